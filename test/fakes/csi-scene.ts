// A volume manager with one CSI driver and an API server made of maps: what the tests of CSI volumes share.
import { join } from 'node:path';
import type { Node, Secret } from '../../src/core/node.ts';
import type { Pod } from '../../src/core/pod.ts';
import type { CsiDriver, PersistentVolume, PersistentVolumeClaim, VolumeAttachment } from '../../src/core/storage.ts';
import { systemClock, type Clock } from '../../src/lib/clock.ts';
import { KubeletError } from '../../src/lib/errors.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Registry } from '../../src/lib/metrics.ts';
import { Attachments } from '../../src/volumes/attachments.ts';
import { Expander } from '../../src/volumes/claims/expander.ts';
import { createVolumes, type Volumes } from '../../src/volumes/create.ts';
import { CsiDrivers } from '../../src/volumes/csi/csi-drivers.ts';
import { attachmentName, uniqueNameOf } from '../../src/volumes/csi/csi-layout.ts';
import { VolumeMetrics } from '../../src/volumes/metrics.ts';
import { ScriptedCsiDriver } from './scripted-csi-driver.ts';
import { removeFolder, temporaryFolder } from '../harness/temporary-folder.ts';

export type ClaimPatch = { readonly metadata?: object; readonly status?: Record<string, unknown> };

export const DRIVER = 'hostpath.csi.k8s.io';
export const NODE = 'n1';

export class CsiScene {
  readonly root: string;
  readonly driver = new ScriptedCsiDriver();
  readonly claims = new Map<string, PersistentVolumeClaim>();
  readonly volumes = new Map<string, PersistentVolume>();
  readonly attached = new Map<string, VolumeAttachment>();
  readonly secrets = new Map<string, Secret>();
  readonly events: string[] = [];
  readonly installed: string[] = [];
  csiDriver: CsiDriver | undefined = {
    metadata: { name: DRIVER },
    spec: {
      attachRequired: true,
      podInfoOnMount: true,
      fsGroupPolicy: 'File',
      volumeLifecycleModes: ['Persistent', 'Ephemeral'],
    },
  };
  readonly patches: ClaimPatch[] = [];
  metrics = new Registry();
  /** Handles of volumes that the controller does not attach. */
  readonly refused = new Set<string>();
  controllerAttaches = true;
  readonly gates = new Set<string>();
  /** Of files of containers, on a host with SELinux. */
  fileContext: string | undefined;
  /** Drivers that were asked again how many volumes they can take. */
  readonly limitsAsked: string[] = [];
  /** Every list of volumes in use that was reported. */
  readonly inUse: string[][] = [];
  drivers!: CsiDrivers;
  kubelet!: Volumes;
  readonly signal = new AbortController().signal;
  readonly #clock: Clock;
  readonly #alsoAttached: { readonly name: string; readonly devicePath: string }[] = [];
  #onGrown: () => void = () => undefined;
  #onEvent: () => void = () => undefined;
  #version = 0;
  #attachments!: Attachments;
  #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
    this.root = temporaryFolder('csi-');
  }

  get endpoint(): string {
    return join(this.root, 'csi.sock');
  }

  /** A kubelet begins; what an earlier one left is found. */
  async start(): Promise<void> {
    this.#stop = new AbortController();
    this.#attachments = new Attachments();
    this.drivers = new CsiDrivers({
      clock: this.#clock,
      log: silentLogger,
      nodeInfo: {
        install: async (driver, { nodeId }) => void this.installed.push(`${driver}=${nodeId}`),
        uninstall: async (driver) => void this.installed.push(`-${driver}`),
        update: async (driver) => void this.limitsAsked.push(driver),
      },
      onChange: () => this.kubelet.manager.retry('kubernetes.io/csi'),
    });
    this.kubelet = createVolumes(
      {
        objects: { configMap: () => missing('configmap'), secret: () => missing('secret') },
        facts: { factsOf: () => ({ podIPs: [], hostIPs: [] }), allocatable: () => ({}) },
        events: {
          pod: (pod, type, reason, message) => {
            this.events.push(`${pod.metadata.name} ${type} ${reason} ${message}`);
            this.#onEvent();
          },
          node: () => undefined,
        },
        clock: this.#clock,
        log: silentLogger,
        metrics: new VolumeMetrics((this.metrics = new Registry())),
        storage: {
          nodeName: NODE,
          attachments: this.#attachments,
          node: () => ({ metadata: { name: NODE } }),
          onVolumesInUse: () => this.#report(),
          controllerAttaches: this.controllerAttaches,
          claims: {
            claim: (ns, name) => found(this.claims, `${ns}/${name}`, 'persistentvolumeclaims'),
            volume: (name) => found(this.volumes, name, 'persistentvolumes'),
          },
          expander: new Expander({
            patchClaim: ({ metadata: { name } }, patch) => this.#patchClaim(name, patch as ClaimPatch),
            events: {
              pod: (pod, type, reason, message) =>
                void this.events.push(`${pod.metadata.name} ${type} ${reason} ${message}`),
              claim: (claim, type, reason, message) =>
                void this.events.push(`claim ${claim.metadata.name} ${type} ${reason} ${message}`),
            },
            clock: this.#clock,
            log: silentLogger,
          }),
          csi: {
            gates: { enabled: (name) => this.gates.has(name) },
            fileContext: () => Promise.resolve(this.fileContext),
            drivers: this.drivers,
            objects: {
              driversRead: () => Promise.resolve(),
              driver: (name) => (name === DRIVER ? this.csiDriver : undefined),
              attachment: (name) => found(this.attached, name, 'volumeattachments.storage.k8s.io'),
              secret: (ns, name) => found(this.secrets, `${ns}/${name}`, 'secrets'),
              token: (_pod, { audience }) =>
                Promise.resolve({ token: `token-${audience}`, expirationTimestamp: '2026-01-01T00:00:00Z' }),
            },
          },
        },
      },
      { rootDir: this.root, refreshEveryMs: 0, claimsEveryMs: 0 },
    );
    await this.kubelet.manager.reconstruct(this.signal);
    this.#report();
    this.#running = Promise.all([this.kubelet.manager.run(this.#stop.signal), this.drivers.run(this.#stop.signal)]);
  }

  /** The driver's socket appears. */
  async register(name = DRIVER): Promise<void> {
    await this.drivers.register({ type: 'CSIPlugin', name, endpoint: this.endpoint, versions: ['1.0.0'] }, this.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async end(): Promise<void> {
    await this.stop();
    await this.driver.close();
    removeFolder(this.root);
  }

  /** A claim bound to a volume that is attached. */
  addClaim(name: string, pv: string, handle: string, spec: Partial<PersistentVolume['spec']> = {}, csi = {}): void {
    const uid = `${name}-uid`;
    this.claims.set(`golden/${name}`, {
      metadata: { name, namespace: 'golden', uid },
      spec: { volumeName: pv },
      status: { phase: 'Bound' },
    });
    this.volumes.set(pv, {
      metadata: { name: pv },
      spec: {
        claimRef: { uid, name, namespace: 'golden' },
        accessModes: ['ReadWriteOnce'],
        volumeMode: 'Filesystem',
        csi: { driver: DRIVER, volumeHandle: handle, ...csi },
        ...spec,
      },
    });
    this.attached.set(attachmentName(handle, DRIVER, NODE), {
      metadata: { name: attachmentName(handle, DRIVER, NODE) },
      status: { attached: true },
    });
    this.#report();
  }

  /** As a resizer leaves it: the volume is larger, the node is to follow. */
  grow(name: string, from: string, to: string): void {
    const claim = this.claims.get(`golden/${name}`);
    const volume = this.volumes.get(claim?.spec?.volumeName ?? '');
    if (claim === undefined || volume === undefined) throw new Error(`no claim ${name}`);
    this.volumes.set(volume.metadata.name, { ...volume, spec: { ...volume.spec, capacity: { storage: to } } });
    this.claims.set(`golden/${name}`, {
      ...claim,
      metadata: { ...claim.metadata, resourceVersion: '7' },
      status: {
        phase: 'Bound',
        capacity: { storage: from },
        allocatedResources: { storage: to },
        allocatedResourceStatuses: { storage: 'NodeResizePending' },
        conditions: [
          { type: 'Resizing', status: 'True' },
          { type: 'FileSystemResizePending', status: 'True' },
        ],
      },
    });
  }

  /** The controller attaches a volume that no persistent volume here names. */
  attachAlso(driver: string, handle: string): void {
    this.#alsoAttached.push({ name: uniqueNameOf(driver, handle), devicePath: '' });
    this.#report();
  }

  /** Resolves when the claim's status was written to the end of an expansion. */
  claimChanged(): Promise<void> {
    return new Promise((resolve) => (this.#onGrown = resolve));
  }

  /** Resolves with the next event about a pod. */
  untilEvent(): Promise<void> {
    return new Promise((resolve) => (this.#onEvent = resolve));
  }

  mount(pod: Pod): Promise<void> {
    return this.kubelet.manager.waitMounted(pod, this.signal);
  }

  async unmount(pod: Pod): Promise<void> {
    this.kubelet.manager.podRemoved(pod.metadata.uid ?? '');
    await this.kubelet.manager.waitUnmounted(pod.metadata.uid ?? '', this.signal);
    this.kubelet.manager.reopen(pod.metadata.uid ?? '');
  }

  /** Enough of a strategic merge for what is patched here. */
  #patchClaim(name: string, patch: ClaimPatch): Promise<PersistentVolumeClaim> {
    const key = `golden/${name}`;
    const claim = this.claims.get(key);
    if (claim === undefined) return missing(name);
    this.patches.push(patch);
    const status: Record<string, unknown> = { ...claim.status, ...patch.status };
    for (const [field, value] of Object.entries(patch.status ?? {})) if (value === null) delete status[field];
    for (const field of Object.keys(status)) if (field.startsWith('$')) delete status[field];
    const after = { ...claim, status } as PersistentVolumeClaim;
    this.claims.set(key, after);
    if (patch.status?.['capacity'] !== undefined) this.#onGrown();
    return Promise.resolve(after);
  }

  /** What a controller would do: attach what there is, and list it with what the node says it uses. */
  #report(): void {
    const inUse = [...this.kubelet.manager.reportVolumesInUse().names];
    if (inUse.join() !== (this.inUse.at(-1) ?? []).join()) this.inUse.push(inUse);
    const volumesAttached = [...this.volumes.values()].flatMap(({ spec: { csi } }) =>
      csi === undefined || this.refused.has(csi.volumeHandle)
        ? []
        : [{ name: uniqueNameOf(csi.driver, csi.volumeHandle), devicePath: '' }],
    );
    const node: Node = {
      metadata: { name: NODE, uid: 'node-uid', resourceVersion: String(++this.#version) },
      status: { volumesInUse: inUse, volumesAttached: [...volumesAttached, ...this.#alsoAttached] },
    };
    queueMicrotask(() => this.#attachments.reportAnswered(node));
  }
}

const missing = (what: string): Promise<never> => Promise.reject(new KubeletError('notFound', `${what} not found`));

function found<T>(objects: Map<string, T>, key: string, kind: string): Promise<T> {
  const object = objects.get(key);
  return object === undefined ? missing(`${kind} "${key.split('/').at(-1)}"`) : Promise.resolve(object);
}

export const podWith = (
  name: string,
  uid: string,
  volumes: NonNullable<Pod['spec']['volumes']>,
  spec: Partial<Pod['spec']> = {},
): Pod => ({
  metadata: { name, namespace: 'golden', uid },
  spec: {
    serviceAccountName: 'default',
    containers: [{ name: 'c', volumeMounts: volumes.map((v) => ({ name: v.name, mountPath: `/${v.name}` })) }],
    volumes,
    ...spec,
  },
});
