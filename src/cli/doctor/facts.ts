// What is known of a machine that is to be a node. Plain data: the checks read nothing else. `undefined` is "could not be
// read", which is a finding of its own only where it matters.

export type FilesystemFacts = {
  readonly what: string;
  readonly path: string;
  readonly freePercent: number;
  readonly freeBytes: number;
  readonly freeInodesPercent: number | undefined;
};

export type CertificateFacts = {
  readonly what: string;
  readonly path: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
};

export type EmbeddedCertificate = {
  readonly kubeconfig: string;
  /** Undefined for one that cannot be read. */
  readonly notAfterMs: number | undefined;
  /** Where rotation stores its certificate. */
  readonly storedPath: string;
};

export type MachineFacts = {
  readonly nowMs: number;
  readonly isRoot: boolean;
  readonly cgroup: {
    readonly version: 1 | 2 | undefined;
    /** v2: enabled at the root. */
    readonly controllers: readonly string[];
    readonly writable: boolean;
  };
  /** Names in /proc/filesystems. */
  readonly filesystems: readonly string[];
  /** `net.ipv4.ip_forward` → its value; undefined where there is no such setting. */
  readonly sysctls: Readonly<Record<string, string | undefined>>;
  readonly swap: { readonly devices: readonly string[]; readonly failSwapOn: boolean };
  readonly runtime: {
    readonly endpoint: string;
    readonly version?: string;
    readonly problem?: string;
    readonly ready?: boolean;
    readonly networkReady?: boolean;
    readonly networkMessage?: string;
    readonly cgroupDriver?: 'systemd' | 'cgroupfs';
  };
  readonly cni: { readonly configurations: readonly string[]; readonly plugins: number };
  readonly clock: {
    /** Whether something says that it keeps the clock right. */
    readonly synchronized: boolean | undefined;
    /** When this program was built or installed: the time cannot be before that. */
    readonly notBeforeMs: number;
  };
  /** Whether mounts made below the kubelet's directory show in containers that run; undefined where nobody knows. */
  readonly sharesMounts: boolean | undefined;
  readonly disks: readonly FilesystemFacts[];
  readonly certificates: readonly CertificateFacts[];
  /** A certificate inside the kubeconfig, where certificates are rotated. */
  readonly embedded: EmbeddedCertificate | undefined;
  readonly systemd: boolean;
  readonly kubelet: { readonly answers: boolean; readonly problem?: string; readonly cgroupDriver?: string };
  readonly memory: { readonly totalBytes: number; readonly availableBytes: number };
  readonly openFiles: { readonly used: number; readonly max: number } | undefined;
  readonly processes: { readonly used: number; readonly max: number } | undefined;
  readonly hostnameResolves: boolean;
};
