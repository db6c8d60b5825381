// Carries out the actions of a run on the world. What cannot be done any more (the pod is gone, the file was never written)
// is left out without a word: a shrunken list of actions is full of such.
import { Random } from '../engine/random.ts';
import type { Action } from '../workload/actions.ts';
import { CHOSEN } from '../workload/choosy-pods.ts';
import { podOf } from '../workload/pods.ts';
import { podNameOf } from '../invariants/violation.ts';
import { deleteAmid } from './delete-amid.ts';
import { drain } from './drain.ts';
import { LASTING } from './faults.ts';
import { putFile } from './host.ts';
import type { World } from './world.ts';

export const MANIFESTS = '/etc/kubernetes/manifests';
const PODS = '/api/v1/namespaces/default/pods';

type Perform = (world: World, action: Action, random: Random) => unknown;

const TABLE: Readonly<Record<string, Perform>> = {
  create: async ({ api }, { name, kind, seed }) => {
    const { status, body } = await api.admin('POST', PODS, podOf(String(name), String(kind), Number(seed)));
    if (status !== 201 && status !== 409) throw new Error(`a pod of kind ${String(kind)} cannot be made: ${body}`);
  },
  delete: ({ api }, { name, grace }) =>
    api.admin('DELETE', `${PODS}/${String(name)}`, grace === -1 ? {} : { gracePeriodSeconds: grace }),
  exit: (world, { name, code }) => {
    const [running] = world.running().filter((c) => podNameOf(c) === name);
    if (running !== undefined) world.runtime.state.exit(running.id, Number(code));
  },
  'delete-amid': deleteAmid,
  resize: ({ api }, { name, milli }) =>
    api.admin(
      'PATCH',
      `${PODS}/${String(name)}/resize`,
      { spec: { containers: [{ name: 'main', resources: { requests: { cpu: `${String(milli)}m` } } }] } },
      'application/strategic-merge-patch+json',
    ),
  'grow-claim': ({ api }, { claim, gib }) =>
    api.admin('PATCH', `/api/v1/namespaces/default/persistentvolumeclaims/${String(claim)}`, {
      spec: { resources: { requests: { storage: `${String(gib)}Gi` } } },
    }),
  'static-write': (world, { name, kind, seed }) =>
    onDisk(world, () => {
      const pod = { apiVersion: 'v1', kind: 'Pod', ...podOf(String(name), String(kind), Number(seed)) };
      putFile(world.files, `${MANIFESTS}/${String(name)}.json`, JSON.stringify(pod));
    }),
  'static-break': (world, { name }) =>
    onDisk(world, () => {
      const path = `${MANIFESTS}/${String(name)}.json`;
      const { inode } = world.files.find(path, 'open');
      if (inode !== undefined) putFile(world.files, path, inode.content.toString().slice(0, 40));
    }),
  'static-remove': (world, { name }) => onDisk(world, () => world.files.unlink(`${MANIFESTS}/${String(name)}.json`)),
  'change-configmap': ({ api }, { seed }) =>
    api.admin('PATCH', '/api/v1/namespaces/default/configmaps/settings', { data: { value: String(seed) } }),
  'change-secret': ({ api }, { seed }) =>
    api.admin('PATCH', '/api/v1/namespaces/default/secrets/keys', { data: { key: btoa(String(seed)) } }),
  'label-node': ({ api }, { seed }) =>
    api.admin('PATCH', '/api/v1/nodes/n1', { metadata: { labels: { drawn: String(seed) } } }),
  'choose-node': ({ api }, { isChosen }) => {
    const labels = { choice: isChosen === true ? CHOSEN.choice : null };
    return api.admin('PATCH', '/api/v1/nodes/n1', { metadata: { labels } });
  },
  cordon: (world, { seed }) => world.cordon(Number(seed) % 2 === 0),
  drain: (world, { forMs }, random) => drain(world, Number(forMs), random),
  'kill-container': (world, _action, random) => {
    const running = world.running();
    if (running.length > 0) world.runtime.state.exit(random.pick(running).id, random.pick([0, 1, 137]));
  },
  'kill-sandbox': ({ runtime }, _action, random) => {
    const ready = [...runtime.state.sandboxes.values()].filter((s) => s.ready);
    if (ready.length > 0) runtime.state.stopSandbox(random.pick(ready).id);
  },
  'runtime-restart': (world, { forMs }) => world.restartRuntime(Number(forMs)),
  'api-restart': ({ api }) => {
    api.breakConnections();
    api.compact();
  },
  'api-watches-end': ({ api }) => api.breakConnections(),
  'api-compact': ({ api }) => api.compact(),
  'agent-kill': (world, { forMs }) => world.restartAgent('kill', Number(forMs)),
  'agent-stop': (world, { forMs }) => world.restartAgent('stop', Number(forMs)),
  'taken-over': (world, { forMs }, random) =>
    world.restartAgent(random.pick(['kill', 'stop']), Number(forMs), () => world.state.leaveAsGo(random)),
  upgraded: (world, { forMs }, random) =>
    world.restartAgent(random.pick(['kill', 'stop']), Number(forMs), () => world.state.leaveAsOlder(random)),
  'power-cut': (world, { forMs }) => world.powerCut(Number(forMs)),
  'node-shutdown': ({ logind }, { forMs }) => logind?.shutDown(Number(forMs)),
  'node-shutdown-called-off': ({ logind }, { forMs }) =>
    logind?.shutDown(Number(forMs), Math.min(Number(forMs), 50_000)),
  'clock-jump': ({ scheduler }, _action, random) =>
    scheduler.jumpWall(random.pick([-600_000, -5000, 5000, 600_000, 7_200_000])),
};

export function perform(world: World, action: Action): void {
  const { do: what, forMs = 0, seed = 1 } = action;
  const random = new Random(Number(seed), what);
  world.trace(`do ${JSON.stringify(action)}`);
  if (LASTING[what] !== undefined) return world.faults.last(what, Number(forMs), random);
  const act = TABLE[what];
  if (act === undefined) throw new Error(`nobody knows how to do ${what}`);
  if (MOMENTARY.has(what)) world.faults.disturb();
  void act(world, action, random);
}

const MOMENTARY = new Set(['runtime-restart', 'api-restart', 'api-watches-end', 'api-compact', 'clock-jump']);

/** The administrator's own write may fail as the agent's does. */
function onDisk(world: World, write: () => void): void {
  try {
    write();
  } catch (err) {
    world.trace(`failed: ${(err as Error).message}`);
  }
}
