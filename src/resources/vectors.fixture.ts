// The recorded answers of Kubernetes' own algorithms that the vectors tests compare with. `VECTORS` names another folder.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Container, Pod, QosClass, ResourceList } from '../core/pod.ts';
import type { MachineTopology } from '../host/topology/machine-topology.ts';
import { cpuTopology, type CpuTopology } from './cpu/cpu-topology.ts';

const FOLDER = process.env['VECTORS'] ?? join(import.meta.dirname, '../../test/vectors');

/** All lines of one file, plain or compressed. */
export function readVectors<T>(name: string): readonly T[] {
  const file = readdirSync(FOLDER).find((each) => each === `${name}.jsonl` || each === `${name}.jsonl.gz`);
  if (file === undefined) throw new Error(`no vectors named ${name} in ${FOLDER}`);
  const bytes = readFileSync(join(FOLDER, file));
  const text = file.endsWith('.gz') ? gunzipSync(bytes).toString() : bytes.toString();
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}

export type TopologyVector = {
  readonly kind: 'topology';
  readonly name: string;
  readonly nodes: readonly {
    readonly id: number;
    readonly cores: readonly (readonly [number, readonly number[], number | null])[];
  }[];
  readonly sockets: number;
  readonly cpus: readonly (readonly [number, number, number, number, number])[];
  readonly counts: Readonly<Record<'cpus' | 'cores' | 'uncore' | 'sockets' | 'numa', number>>;
};

export const machineOf = ({ nodes, sockets }: TopologyVector): MachineTopology => ({
  sockets,
  nodes: nodes.map(({ id, cores }) => ({
    id,
    memoryBytes: 0,
    hugePages: [],
    distances: [],
    cores: cores.map(([socket, threads, uncore]) => ({ socket, threads, uncoreCache: uncore ?? undefined })),
  })),
});

/** The machines that the cases of a file refer to, by name. */
export function topologiesOf(lines: readonly { readonly kind: string }[]): (name: string) => CpuTopology {
  const all = new Map(
    lines
      .filter((line): line is TopologyVector => line.kind === 'topology')
      .map((line) => [line.name, cpuTopology(machineOf(line))]),
  );
  return (name) => {
    const found = all.get(name);
    if (found === undefined) throw new Error(`no topology ${name}`);
    return found;
  };
}

export type PodVector = {
  readonly uid: string;
  readonly qos: QosClass;
  readonly containers: readonly {
    readonly name: string;
    readonly kind: 'init' | 'sidecar' | 'main';
    readonly cpu?: string;
    readonly requests?: Readonly<Record<string, number>>;
  }[];
};

/** Guaranteed pods have limits equal to their requests. */
export function podOfVector({ uid, qos, containers }: PodVector): Pod {
  const made = (each: PodVector['containers'][number]): Container => {
    const requests: ResourceList =
      each.requests === undefined
        ? { cpu: each.cpu ?? '0', memory: '64Mi' }
        : Object.fromEntries(Object.entries(each.requests).map(([name, bytes]) => [name, String(bytes)]));
    return {
      name: each.name,
      ...(each.kind === 'sidecar' && { restartPolicy: 'Always' }),
      resources: { requests, ...(qos === 'Guaranteed' && { limits: requests }) },
    };
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: uid, namespace: 'default', uid },
    spec: {
      initContainers: containers.filter((c) => c.kind !== 'main').map(made),
      containers: containers.filter((c) => c.kind === 'main').map(made),
    },
    status: { qosClass: qos },
  };
}
