// Calls about one pod hang: the others do not notice, the node stays Ready, the pod is named, and when the calls work
// again it recovers. Then everything at once, at random: errors, delays, lost answers, lost and doubled events.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { EVENTS } from '../../src/kube/resources.ts';
import { GrpcCode } from '../../src/lib/grpc/status.ts';
import { startNode, type TestNode } from '../harness/node.ts';
import { timePasses, untilSeen } from '../harness/until.ts';
import type { Fault } from './cri-proxy.ts';
import { Fleet, isReady, randomFrom } from './fleet.ts';

const SOAK_MS = Number(process.env['FAULT_ROUNDS'] ?? 12) * 1000;
const SEED = Number(process.env['SEED'] ?? 1);
const REQUEST_TIMEOUT_S = 4;
/** What another pod needs for its start and its end. */
const BESIDE = ['RunPodSandbox', 'StartContainer', 'StopPodSandbox'];
const MOST_TRIES = 10;
const never = new AbortController().signal;

/** Which pod a CRI call is about, from the calls that made its ids. */
class Owners {
  readonly #names = new Map<string, string>();
  readonly #besideHung = new Map<string, Set<string>>();

  constructor(node: TestNode) {
    const before_ = node.cri.observe;
    node.cri.observe = (call) => {
      before_?.(call);
      const name = this.#ownerOf(call.request);
      const { containerId, podSandboxId } = (call.response ?? {}) as Ids;
      const id = containerId ?? podSandboxId;
      if (name !== undefined && id !== undefined) this.#names.set(id, name);
      if (name !== undefined && call.error === undefined && node.cri.hangsSinceMs < call.atMs)
        this.#besideHung.set(name, (this.#besideHung.get(name) ?? new Set()).add(call.call));
    };
  }

  is(name: string): (request: unknown) => boolean {
    return (request) => this.#ownerOf(request) === name;
  }

  /** The calls about the pod that were made and answered while another call hung. */
  besideHung(name: string): ReadonlySet<string> {
    return this.#besideHung.get(name) ?? new Set();
  }

  #ownerOf(request: unknown): string | undefined {
    const { sandboxConfig, config, containerId, podSandboxId } = request as Named & Ids;
    const made = (sandboxConfig ?? config)?.metadata?.name;
    return made ?? this.#names.get(containerId ?? podSandboxId ?? '');
  }
}
type Metadata = { readonly metadata?: { readonly name?: string } };
type Named = { readonly sandboxConfig?: Metadata; readonly config?: Metadata };
type Ids = { readonly containerId?: string; readonly podSandboxId?: string };

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

  /** Others start, run and stop while the call hangs. It hangs again and again, so a pod may come between two of them. */
  async function othersAreWell(prefix: string): Promise<void> {
    const answered = new Set<string>();
    for (let i = 0; i < MOST_TRIES && !BESIDE.every((verb) => answered.has(verb)); i++) {
      const name = `${prefix}-${i}`;
      await untilSeen(
        'a call hangs',
        () => node.cri.hangsSinceMs,
        (sinceMs) => sinceMs < Infinity,
      );
      await fleet.create(name, 'plain', false);
      await untilSeen(
        `${name} is ready`,
        () => fleet.shown(name),
        (pod) => pod !== undefined && isReady(pod),
      );
      await fleet.remove(name);
      await untilSeen(
        `${name} is gone`,
        () => fleet.shown(name),
        (pod) => pod === undefined,
      );
      for (const verb of owners.besideHung(name)) answered.add(verb);
    }
    for (const verb of BESIDE)
      assert.ok(answered.has(verb), `no ${verb} of another pod while it hung: ${[...answered]}`);
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
    await untilSeen(
      'the pod says what is wrong',
      () => eventsOf('start-hangs'),
      (seen) => seen.some((e) => /^Failed: .*(DeadlineExceeded|deadline)/i.test(e)),
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
    await untilSeen(
      'the pod says what is wrong',
      () => eventsOf('start-hangs'),
      (seen) => seen.some((e) => e.startsWith('FailedKillPod:')),
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
    await untilSeen(
      'it is named',
      () => node.log(),
      (text) => /pod set aside.*default\/status-hangs/.test(text),
    );
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
    await fleet.untilConverged(`after random trouble (seed ${SEED})`);
    await fleet.assertNothingTwice();
    assert.doesNotMatch(await node.log(), /runs beside a newer instance/, 'nothing was started twice on the way');
    for (const { name } of fleet.wanted()) await fleet.remove(name);
    await fleet.untilConverged('at the end');
    let left: string[] = [];
    await untilSeen(
      'nothing is left',
      async () => (left = await fleet.leftovers()),
      (seen) => seen.length === 0,
    ).catch((err: unknown) => {
      throw new Error(`left over: ${left.join(', ')}`, { cause: err });
    });
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
