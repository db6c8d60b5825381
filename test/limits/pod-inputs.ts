// Pods as inputs: from the API server. Each must be dealt with like any other: it runs or says why not, and goes when deleted.
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { timePasses } from '../harness/until.ts';
import { NODE_NAME, type AgentWorld } from './agent-world.ts';
import { described, type Input } from './inputs.ts';
import { apiShape, places, type Path } from './shapes.ts';
import { base64, FairTime, SECRET, type Surface } from './surface.ts';

export const PODS = '/api/v1/pods';
export const NAMESPACE = 'default';
/** Until it runs or says why not; the agent tries a few things again first. */
const SAID_WITHIN_MS = 4000;
const GONE_WITHIN_MS = 5000;
const SERVE = ['sh', '-c', "trap 'exit 0' TERM; sleep 86400 & wait"];

export type Json = Record<string, unknown>;

/** Small, with something of most parts; what is put into it finds an ordinary pod around it. */
export const SAMPLE: Json = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { labels: { app: 'a' } },
  spec: {
    nodeName: NODE_NAME,
    restartPolicy: 'Always',
    automountServiceAccountToken: false,
    enableServiceLinks: true,
    terminationGracePeriodSeconds: 1,
    volumes: [
      { name: 'usual', emptyDir: {} },
      { name: 'marked', secret: { secretName: 'marked' } },
    ],
    containers: [
      {
        name: 'c',
        image: BUSYBOX_IMAGE,
        imagePullPolicy: 'IfNotPresent',
        command: SERVE,
        env: [
          { name: 'MARKED', valueFrom: { secretKeyRef: { name: 'marked', key: 'k' } } },
          { name: 'A', value: 'xxxxxxxxxx' },
        ],
        volumeMounts: [{ name: 'usual', mountPath: '/v' }],
      },
    ],
  },
};

/** Kinds of volumes whose commands ask other machines: what they say, they say when those did not answer. */
const REMOTE =
  /^spec\.volumes\.2\.(?:iscsi|fc|nfs|rbd|cephfs|glusterfs|flexVolume|azureFile|azureDisk|awsElasticBlockStore|gcePersistentDisk|cinder|portworxVolume|vsphereVolume)\b/;
const asksOthers = (input: Input): boolean => input.what.some(({ path }) => REMOTE.test(path.join('.')));

/** Whose value identifies the pod, or takes it away from the node. */
const FIXED = /^(?:apiVersion|kind|metadata\.(?:name|namespace|uid|resourceVersion|deletion.*)|spec\.nodeName)$/;
/** The sample has these: what is put there is put beside them. */
const moved = (path: Path): Path =>
  path[0] === 'spec' && path[1] === 'volumes' && path[2] === 0 ? ['spec', 'volumes', 2, ...path.slice(3)] : path;

const shape = apiShape('Pod');
export const podPlaces = places(shape)
  .filter(({ path }) => path.length > 1 && path[0] !== 'status' && !FIXED.test(path.join('.')))
  .map((place) => ({ ...place, path: moved(place.path) }));

export const record = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});

/** The input as a pod of the name. */
export function named(input: Input, name: string): Json {
  const made = record(input.make());
  const own = { name, namespace: NAMESPACE, uid: `uid-${name}`, creationTimestamp: new Date().toISOString() };
  return { ...made, apiVersion: 'v1', kind: 'Pod', metadata: { ...record(made['metadata']), ...own } };
}

/** Why a pod's life goes on: it runs, is over, or says what is wrong. */
export function isSettled(world: AgentWorld, name: string): boolean {
  const status = record(world.api.get(PODS, `${NAMESPACE}/${name}`)?.['status']);
  if (status['phase'] === 'Failed' || status['phase'] === 'Succeeded' || status['phase'] === 'Running') return true;
  const waiting = ['containerStatuses', 'initContainerStatuses'].flatMap((key) => list(status[key]));
  return (
    waiting.some((one) => isSaid(record(record(one)['state']))) || world.api.warned.has(name) || logged(world, name)
  );
}

export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);

function isSaid(state: Json): boolean {
  const { reason, message } = record(state['waiting']);
  if (state['running'] !== undefined || state['terminated'] !== undefined) return true;
  return (
    reason !== undefined && reason !== 'ContainerCreating' && reason !== 'PodInitializing' && message !== undefined
  );
}

/** What cannot be read at all is said in the log: there is no pod to say it. */
const logged = (world: AgentWorld, name: string): boolean => world.logNames(name);

export async function within(world: AgentWorld, ms: number, isDone: () => boolean): Promise<boolean> {
  const time = new FairTime(world);
  while (!isDone()) {
    if (!world.runs) return false;
    if (time.ms > ms) return false;
    await timePasses(20, 'another instant');
  }
  return true;
}

let count = 0;

async function offer(world: AgentWorld, inputs: readonly Input[]): Promise<readonly string[]> {
  const pods = new Map(inputs.map((input) => [`p${count++}`, input]));
  const wrong: string[] = [];
  const fails = (names: readonly string[], what: string): void => {
    for (const name of names) wrong.push(`${what}: ${described(pods.get(name) ?? inputs[0]!)}\n${world.excerpt(name)}`);
  };
  for (const [name, input] of pods) world.api.put(PODS, `${NAMESPACE}/${name}`, named(input, name));
  const names = [...pods.keys()];
  await within(world, SAID_WITHIN_MS, () =>
    names.every((name) => isSettled(world, name) || asksOthers(pods.get(name) as Input)),
  );
  if (!world.runs) return wrong;
  fails(
    names.filter((name) => !isSettled(world, name) && !asksOthers(pods.get(name) as Input)),
    'says nothing',
  );
  await remove(world, names);
  const left = names.filter((name) => !isGone(world, name));
  fails(left, 'does not go');
  for (const name of left) world.api.remove(PODS, `${NAMESPACE}/${name}`);
  for (const name of names) world.api.warned.delete(name);
  return wrong;
}

const isGone = (world: AgentWorld, name: string): boolean =>
  (world.api.get(PODS, `${NAMESPACE}/${name}`) === undefined || world.logNames(name)) &&
  !world.podFolders().includes(`uid-${name}`);

export async function remove(world: AgentWorld, names: readonly string[], ms = GONE_WITHIN_MS): Promise<void> {
  const deletionTimestamp = new Date().toISOString();
  for (const name of names)
    world.api.change(PODS, `${NAMESPACE}/${name}`, (pod) => ({
      ...pod,
      metadata: { ...record(pod['metadata']), deletionTimestamp, deletionGracePeriodSeconds: 1 },
    }));
  await within(world, ms, () => names.every((name) => isGone(world, name)));
  for (const name of names) if (world.unreadable(name)) world.api.remove(PODS, `${NAMESPACE}/${name}`);
}

/** How long an ordinary pod takes to start and to stop, in fair time. */
export async function ordinaryPod(world: AgentWorld, name: string): Promise<{ startMs: number; stopMs: number }> {
  const own = { name, namespace: NAMESPACE, uid: `uid-${name}`, creationTimestamp: new Date().toISOString() };
  const starting = new FairTime(world);
  world.api.put(PODS, `${NAMESPACE}/${name}`, { ...SAMPLE, metadata: own });
  const isReady = (): boolean =>
    list(record(world.api.get(PODS, `${NAMESPACE}/${name}`)?.['status'])['conditions']).some(
      (c) => record(c)['type'] === 'Ready' && record(c)['status'] === 'True',
    );
  const hasStarted = await within(world, 30_000, isReady);
  const startMs = hasStarted ? starting.ms : Infinity;
  const stopping = new FairTime(world);
  await remove(world, [name]);
  return { startMs, stopMs: stopping.ms };
}

/** What pods of the samples refer to. */
export function furnish({ api }: AgentWorld): void {
  const metadata = (name: string): Json => ({ name, namespace: NAMESPACE, uid: `uid-${name}` });
  api.put('/api/v1/secrets', `${NAMESPACE}/marked`, { metadata: metadata('marked'), data: { k: base64(SECRET) } });
  api.put('/api/v1/secrets', `${NAMESPACE}/usual`, { metadata: metadata('usual'), data: { usual: base64(SECRET) } });
  api.put('/api/v1/configmaps', `${NAMESPACE}/usual`, { metadata: metadata('usual'), data: { usual: 'x' } });
  api.token = SECRET;
}

export const POD_INPUTS: Surface = {
  name: 'pods of the API server',
  schema: { shape, sample: SAMPLE, places: podPlaces },
  batch: 24,
  most: 4,
  offer,
};
