// The rows of the matrix: what freezes, how, which pods it holds up, and how long each thing may take meanwhile.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PodSpec } from '../../../src/core/pod.ts';
import { openCgroups } from '../../../src/host/cgroups/open.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { FakeLogind, FakeSystemd } from '../../fakes/fake-systemd.ts';
import { MessageBus, noMessageBus } from '../../harness/message-bus.ts';
import type { FrozenNode, FrozenNodeOptions } from './frozen-node.ts';

export const COLUMNS = ['pod deleted', 'pod evicted', 'probe due', 'node status due', 'agent stopped'] as const;
export type Column = (typeof COLUMNS)[number];

/** `thawed`: nothing can be done before the part answers again, and it counts from then. */
export type Bound = { readonly ms: number; readonly from: 'frozen' | 'thawed' };

export type Part = {
  readonly options?: Partial<FrozenNodeOptions>;
  /** Of the pods that are deleted and evicted. */
  readonly spec?: Partial<PodSpec>;
  freeze(node: FrozenNode): Promise<void> | void;
  thaw(node: FrozenNode): Promise<void> | void;
  /** Whether a pod that was made while it was frozen has come to where it waits. */
  reached?(node: FrozenNode): boolean;
  /** Processes that must not outlive the agent. */
  children?(): readonly number[];
  close?(): Promise<void> | void;
};

export type Row = {
  readonly name: string;
  readonly skip?: string | false;
  /** Whether the pods that are deleted and evicted run already, or get stuck at their start. */
  readonly pods: 'running' | 'starting';
  /** The pod that is deleted comes from a file. */
  readonly isStatic?: boolean;
  /** Pods that are made while it is frozen, and get stuck. */
  readonly crowd?: number;
  /** Where an eviction shows: in the pod's status, in the event because its containers cannot be stopped, in the runtime. */
  readonly evictionShows?: 'status' | 'event' | 'runtime';
  readonly bounds: Readonly<Record<Column, Bound>>;
  open(dir: string): Promise<Part> | Part;
};

const within = (seconds: number, from: Bound['from'] = 'frozen'): Bound => ({ ms: seconds * 1000, from });
/** What holds for whoever is not concerned. Eviction looks every ten seconds. */
const USUAL: Row['bounds'] = {
  'pod deleted': within(10),
  'pod evicted': within(20),
  'probe due': within(4),
  'node status due': within(5),
  'agent stopped': within(10),
};

const { signal } = new AbortController();

export const ROWS: readonly Row[] = [
  {
    name: 'container runtime',
    pods: 'running',
    evictionShows: 'event',
    bounds: { ...USUAL, 'pod deleted': within(15, 'thawed'), 'pod evicted': within(30), 'node status due': within(10) },
    open: () => ({
      freeze: ({ proxy }) => void proxy.inject({ verb: '*', fault: { do: 'freeze' } }),
      thaw: ({ proxy }) => proxy.lift(),
    }),
  },
  {
    name: 'API server',
    pods: 'running',
    isStatic: true,
    evictionShows: 'runtime',
    bounds: { ...USUAL, 'node status due': within(15, 'thawed') },
    open: () => ({ freeze: ({ wire }) => wire.freeze(), thaw: ({ wire }) => wire.thaw() }),
  },
  {
    name: 'D-Bus',
    skip: noMessageBus,
    pods: 'running',
    bounds: { ...USUAL, 'pod deleted': within(15, 'thawed') },
    open: async () => {
      const cgroups = await openCgroups(systemClock, 'cgroupfs');
      const bus = await new MessageBus().start();
      const systemd = await new FakeSystemd().open(bus);
      systemd.makeSlice = (path) => cgroups.create(path, {}, signal);
      const logind = await new FakeLogind().open(bus);
      logind.maxDelaySeconds = 3600;
      return {
        options: {
          systemd: true,
          config: 'shutdownGracePeriod: 20s\nshutdownGracePeriodCriticalPods: 10s',
          env: { DBUS_SYSTEM_BUS_ADDRESS: bus.address },
        },
        freeze: () => bus.freeze(),
        thaw: () => bus.thaw(),
        close: () => {
          logind.close();
          return bus.close();
        },
      };
    },
  },
  {
    name: 'disk',
    pods: 'running',
    // More than there are file threads.
    crowd: 20,
    bounds: {
      ...USUAL,
      'pod deleted': within(10, 'thawed'),
      'pod evicted': within(40),
      'node status due': within(10),
      'agent stopped': within(10, 'thawed'),
    },
    open: openDisk,
  },
  {
    name: 'FUSE mount',
    skip: existsSync('/dev/fuse') ? false : 'this machine has no /dev/fuse',
    pods: 'starting',
    crowd: 8,
    bounds: USUAL,
    open: openFuse,
  },
  {
    name: 'CNI plugin',
    pods: 'starting',
    bounds: { ...USUAL, 'pod deleted': within(20), 'pod evicted': within(30) },
    open: () => ({
      freeze: ({ proxy }) => {
        for (const verb of ['RunPodSandbox', 'StopPodSandbox']) proxy.inject({ verb, fault: { do: 'freeze' } });
      },
      thaw: ({ proxy }) => proxy.lift(),
      reached: ({ proxy }) => (proxy.counts.get('RunPodSandbox') ?? 0) >= 3,
    }),
  },
  {
    name: 'image registry',
    pods: 'starting',
    bounds: USUAL,
    open: () => ({
      spec: { containers: [{ name: 'c', image: 'registry.test/slow:1' }] },
      freeze: ({ proxy }) => void proxy.inject({ verb: 'PullImage', fault: { do: 'freeze' } }),
      thaw: ({ proxy }) => proxy.lift(),
      reached: ({ proxy }) => (proxy.counts.get('PullImage') ?? 0) >= 1,
    }),
  },
  { name: 'credential plugin', pods: 'starting', bounds: USUAL, open: openCredentialPlugin },
];

/** A filesystem on which every write waits. Thaws when this process ends, whatever way that comes. */
async function openDisk(dir: string): Promise<Part> {
  const image = join(dir, 'disk.img');
  const mount = join(dir, 'disk');
  mkdirSync(mount);
  execFileSync('truncate', ['-s', '64M', image]);
  execFileSync('mkfs.ext4', ['-q', '-F', image]);
  execFileSync('mount', ['-o', 'loop', image, mount]);
  const script = 'while read what; do fsfreeze "$what" "$0"; echo done; done; fsfreeze -u "$0" 2>/dev/null || true';
  const guard = spawn('sh', ['-c', script, mount], { stdio: ['pipe', 'pipe', 'inherit'] });
  const say = async (what: string): Promise<void> => {
    const done = once(guard.stdout, 'data');
    guard.stdin.write(`${what}\n`);
    await done;
  };
  let frozen = false;
  const thaw = async (): Promise<void> => {
    if (frozen) await say('-u');
    frozen = false;
  };
  return {
    options: { rootDir: join(mount, 'kubelet') },
    freeze: async () => {
      await say('-f');
      frozen = true;
    },
    thaw,
    close: async () => {
      await thaw();
      const gone = once(guard, 'exit');
      guard.stdin.end();
      await gone;
      execFileSync('umount', [mount]);
    },
  };
}

async function openFuse(dir: string): Promise<Part> {
  const mount = join(dir, 'fuse');
  mkdirSync(mount);
  const script = join(import.meta.dirname, '..', '..', 'node', 'volumes-fuse-server.ts');
  const server: ChildProcess = spawn(process.execPath, ['--no-warnings', script, mount, 'answers'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (server.stdout !== null) await once(server.stdout, 'data');
  return {
    spec: {
      volumes: [{ name: 'v', hostPath: { path: join(mount, 'sub'), type: 'Directory' } }],
      containers: [{ name: 'c', volumeMounts: [{ name: 'v', mountPath: '/v' }] }],
    },
    freeze: () => void server.kill('SIGSTOP'),
    thaw: () => void server.kill('SIGCONT'),
    close: async () => {
      const gone = once(server, 'exit');
      server.kill('SIGKILL');
      await gone;
      execFileSync('umount', ['-l', mount]);
    },
  };
}

const PLUGIN = 'kubelet-ts-frozen-plugin';

function openCredentialPlugin(dir: string): Part {
  const bin = join(dir, 'plugins');
  const asked = join(dir, 'plugin-asked');
  mkdirSync(bin);
  writeFileSync(join(bin, PLUGIN), `#!/bin/sh\necho $$ >> ${asked}\nexec sleep 1000\n`, { mode: 0o755 });
  const config = join(dir, 'credential-plugins.json');
  const provider = {
    name: PLUGIN,
    matchImages: ['registry.test'],
    defaultCacheDuration: '1h',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
  };
  const document = { kind: 'CredentialProviderConfig', apiVersion: 'kubelet.config.k8s.io/v1', providers: [provider] };
  writeFileSync(config, JSON.stringify(document));
  return {
    options: {
      flags: [`--image-credential-provider-config=${config}`, `--image-credential-provider-bin-dir=${bin}`],
    },
    spec: { containers: [{ name: 'c', image: 'registry.test/slow:1' }] },
    freeze: () => undefined, // it never answers
    thaw: () => undefined,
    reached: () => existsSync(asked),
    children: () => readFileSync(asked, 'utf8').trim().split('\n').map(Number),
  };
}
