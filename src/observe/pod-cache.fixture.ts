// A pod cache on a runtime with one pod, whose answers a test holds and releases by hand.
import assert from 'node:assert/strict';
import { ContainerState, PodSandboxState, type ListContainersRequest } from '../cri/gen/cri.ts';
import type { CriRuntime } from '../cri/services.ts';
import { podUid } from '../core/ids.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { PodCache } from './pod-cache.ts';
import { observedSandbox } from './snapshot-of.ts';

export const forever = new AbortController().signal;
export const UID = podUid('u');
const labels = {
  'io.kubernetes.pod.uid': UID,
  'io.kubernetes.pod.name': 'p',
  'io.kubernetes.pod.namespace': 'n',
};

type Answer = { sandbox?: 'ready' | 'notReady'; container?: ContainerState };

const listedSandbox = ({ sandbox }: Answer) => ({
  id: 's',
  metadata: { name: 'p', namespace: 'n', uid: UID, attempt: 0 },
  state: sandbox === 'ready' ? PodSandboxState.SANDBOX_READY : PodSandboxState.SANDBOX_NOTREADY,
  createdAt: 1n,
  labels,
  annotations: {},
  runtimeHandler: '',
});

const listedContainer = ({ container }: Answer) => ({
  id: 'c',
  podSandboxId: 's',
  labels,
  state: container,
  annotations: {},
  createdAt: 1n,
});

/** One pod; `gate` holds every list of that pod until a test lets it through. */
export function setup() {
  const clock = new ManualClock();
  const world: Answer = {};
  const gates: (() => void)[] = [];
  const control = {
    gated: false,
    /** Lists with dead containers are larger than the runtime sends. */
    tooManyDead: false,
    /** Lists that are asked for now are answered by this, whenever it comes. */
    late: undefined as Promise<unknown[]> | undefined,
    /** Answers about containers are held, each with what was true when it was asked for. */
    gatedStatus: false,
    fail: undefined as Error | undefined,
    failStatus: undefined as Error | undefined,
    lists: 0,
    statuses: 0,
  };
  const sandbox = () => listedSandbox(world);
  const container = () => listedContainer(world);
  const runtime = {
    listPodSandbox: async () => {
      control.lists++;
      if (control.late !== undefined) return { items: await control.late };
      if (control.gated) await new Promise<void>((resolve) => gates.push(resolve));
      if (control.fail !== undefined) throw control.fail;
      return { items: world.sandbox === undefined ? [] : [sandbox()] };
    },
    listContainers: async ({ filter }: ListContainersRequest) => {
      const state = filter?.state?.state;
      if (control.tooManyDead && (state === undefined || state === ContainerState.CONTAINER_EXITED))
        throw new KubeletError('exhausted', 'larger than max');
      const isListed = world.container !== undefined && (state === undefined || state === world.container);
      return { containers: isListed ? [container()] : [] };
    },
    podSandboxStatus: async () => ({ status: { ...sandbox(), network: { ip: '10.0.0.1', additionalIps: [] } } }),
    containerStatus: async () => {
      control.statuses++;
      if (control.failStatus !== undefined) throw control.failStatus;
      const then = container();
      if (control.gatedStatus) await new Promise<void>((resolve) => gates.push(resolve));
      return {
        status: { ...then, metadata: { name: 'c', attempt: 0 }, createdAt: 1n, annotations: {}, mounts: [] },
      };
    },
  } as unknown as CriRuntime;
  const made = async () => {
    const { status } = await runtime.podSandboxStatus({}, forever);
    assert.ok(status);
    return { made: { sandbox: observedSandbox(status), containerIds: ['c'] } };
  };
  const cache = new PodCache({ runtime, clock, log: silentLogger }, { readDeadlineMs: 1000 });
  const settle = (): Promise<void> => clock.advance(0);
  const release = async (): Promise<void> => {
    for (const go of gates.splice(0)) go();
    await settle();
  };
  return { clock, world, control, cache, made, release, settle, sandbox };
}
