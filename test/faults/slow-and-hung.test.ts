// Calls about one pod hang: the others do not notice, the node stays Ready, the pod is named, and when the calls work
// again it recovers. Then everything at once, at random: errors, delays, lost answers, lost and doubled events.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { EVENTS } from '../../src/kube/resources.ts';
import { GrpcCode } from '../../src/lib/grpc/status.ts';
import { startNode, type TestNode } from '../harness/node.ts';
import { timePasses, until } from '../harness/until.ts';
import type { Fault } from './cri-proxy.ts';
import { Fleet, isReady, randomFrom } from './fleet.ts';

const SOAK_MS = Number(process.env['FAULT_ROUNDS'] ?? 12) * 1000;
const SEED = Number(process.env['SEED'] ?? 1);
const REQUEST_TIMEOUT_S = 4;
const never = new AbortController().signal;

/** Which pod a CRI id belongs to, from the calls that made it. */
class Owners {
  readonly #names = new Map<string, string>();

  constructor(node: TestNode) {
    const before_ = node.cri.observe;
    node.cri.observe = (call) => {
      before_?.(call);
      const request = call.request as { sandboxConfig?: Named; config?: Named };
      const response = (call.response ?? {}) as { containerId?: string; podSandboxId?: string };
      const name = (request.sandboxConfig ?? request.config)?.metadata?.name;
      const id = response.containerId ?? response.podSandboxId;
      if (name !== undefined && id !== undefined) this.#names.set(id, name);
    };
  }

  is(name: string): (request: unknown) => boolean {
    return (request) => {
      const { containerId, podSandboxId } = request as { containerId?: string; podSandboxId?: string };
      return this.#names.get(containerId ?? podSandboxId ?? '') === name;
    };
  }
}
type Named = { readonly metadata?: { readonly name?: string } };

describe('slow and hung calls', () => {
  let node: TestNode;
  let fleet: Fleet;
  let owners: Owners;

  before(async () => {
    node = await startNode({
      config: `runtimeRequestTimeout: ${REQUEST_TIMEOUT_S}s\ncrashLoopBackOff: {maxContainerRestartPeriod: 1s}`,
    });
    fleet = new Fleet(node);
    fleet.start();
    owners = new Owners(node);
    for (const [i, kind] of ['plain', 'ready', 'sidecar', 'two'].entries())
      await fleet.create(`well-${i}`, kind, i === 0);
    await fleet.untilConverged('at first');
  });

  after(async () => {
    node?.cri.lift();
    fleet?.stop();
    await node?.stop();
  });

  /** Others start, run and stop as if nothing were the matter. */
  async function othersAreWell(name: string): Promise<void> {
    const begun = performance.now();
    await fleet.create(name, 'plain', false);
    await until(`${name} is ready`, async () => {
      const pod = await fleet.shown(name);
      return pod !== undefined && isReady(pod);
    });
    await fleet.remove(name);
    await until(`${name} is gone`, async () => (await fleet.shown(name)) === undefined);
    assert.ok(performance.now() - begun < 8000, 'another pod had to wait');
    assert.deepEqual(fleet.nodeFlaps, []);
    assert.deepEqual(fleet.flaps, []);
  }

  const eventsOf = async (name: string): Promise<string[]> => {
    const query = { fieldSelector: `involvedObject.name=${name}` };
    const { items } = await node.client.list(EVENTS, { namespace: 'default', query }, never);
    return items.map((e) => `${e.reason}: ${e.message}`);
  };

  it('StartContainer hangs', async () => {
    const lift = node.cri.inject({ verb: 'StartContainer', fault: { do: 'hang' }, when: owners.is('start-hangs') });
    await fleet.create('start-hangs', 'plain', false);
    await othersAreWell('beside-start');
    await until('the pod says what is wrong', async () =>
      (await eventsOf('start-hangs')).some((e) => /^Failed: .*(DeadlineExceeded|deadline)/i.test(e)),
    );
    lift();
    await fleet.untilConverged('when it starts again');
    await fleet.assertNothingTwice();
  });

  it('StopContainer and StopPodSandbox hang', async () => {
    const lifts = ['StopContainer', 'StopPodSandbox'].map((verb) =>
      node.cri.inject({ verb, fault: { do: 'hang' }, when: owners.is('start-hangs') }),
    );
    await fleet.remove('start-hangs');
    await othersAreWell('beside-stop');
    await until(
      'the pod says what is wrong',
      async () => (await eventsOf('start-hangs')).some((e) => e.startsWith('FailedKillPod:')),
      20_000,
    );
    assert.ok((await fleet.shown('start-hangs')) !== undefined, 'a pod that runs is shown');
    for (const lift of lifts) lift();
    await fleet.untilConverged('when it can be stopped');
  });

  it('ContainerStatus hangs', async () => {
    await fleet.create('status-hangs', 'plain', false);
    await fleet.untilConverged('with it');
    const lift = node.cri.inject({ verb: 'ContainerStatus', fault: { do: 'hang' }, when: owners.is('status-hangs') });
    const [running] = (await fleet.running()).get('status-hangs/main') ?? [];
    fleet.excused.add('status-hangs');
    await node.containerd.runtime.stopContainer({ containerId: running?.id ?? '', timeout: 0 }, never);
    await othersAreWell('beside-status');
    await until('it is named', async () => /pod set aside.*default\/status-hangs/.test(await node.log()), 20_000);
    lift();
    await fleet.untilConverged('when it can be read');
    assert.equal((await fleet.shown('status-hangs'))?.status?.containerStatuses?.[0]?.restartCount, 1);
    await fleet.assertNothingTwice();
  });

  it(`comes to rest after ${SOAK_MS / 1000} s of random trouble (seed ${SEED})`, async () => {
    const random = randomFrom(SEED);
    const end = performance.now() + SOAK_MS;
    const kinds = ['plain', 'ready', 'sidecar', 'two', 'crash'];
    for (let i = 0; performance.now() < end; i++) {
      node.cri.events = (['duplicate', 'drop', undefined] as const)[random(3)];
      const verb = VERBS[random(VERBS.length)] ?? '*';
      const fault = FAULTS[random(FAULTS.length)];
      if (fault !== undefined) node.cri.inject({ verb, fault, times: 1 + random(3) });
      const made = fleet.wanted().filter((m) => m.name.startsWith('soak-'));
      const oldest = made[0];
      if (made.length < 10) await fleet.create(`soak-${i}`, kinds[random(kinds.length)] ?? 'plain', random(4) === 0);
      else if (oldest !== undefined) await fleet.remove(oldest.name);
      for (const { name } of fleet.wanted()) fleet.excused.add(name);
      await timePasses(random(500), 'another instant');
      await fleet.assertAlive();
    }
    node.cri.lift();
    node.cri.events = undefined;
    await fleet.untilConverged(`after random trouble (seed ${SEED})`, 60_000);
    await fleet.assertNothingTwice();
    assert.doesNotMatch(await node.log(), /runs beside a newer instance/, 'nothing was started twice on the way');
    for (const { name } of fleet.wanted()) await fleet.remove(name);
    await fleet.untilConverged('at the end');
    let left: string[] = [];
    await until('nothing is left', async () => (left = await fleet.leftovers()).length === 0, 20_000).catch(
      (err: unknown) => {
        throw new Error(`left over: ${left.join(', ')}`, { cause: err });
      },
    );
  });
});

const FAULTS: readonly Fault[] = [
  { do: 'error', code: GrpcCode.Internal, message: 'broken' },
  { do: 'error', code: GrpcCode.Unavailable, message: 'away' },
  { do: 'loseAnswer', code: GrpcCode.Unknown, message: 'lost' },
  { do: 'loseAnswer', code: GrpcCode.DeadlineExceeded, message: 'late' },
  { do: 'delay', ms: 300 },
  { do: 'delay', ms: 1500 },
  { do: 'hang' },
  { do: 'cut' },
];
const VERBS = [
  'RunPodSandbox',
  'CreateContainer',
  'StartContainer',
  'StopContainer',
  'StopPodSandbox',
  'RemoveContainer',
  'ContainerStatus',
  'PodSandboxStatus',
  'ListContainers',
  'ListPodSandbox',
  'Status',
  'ImageStatus',
  '*',
];
