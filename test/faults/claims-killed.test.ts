// The whole kubelet is killed at random instants while ten pods with two claims each, one of them a device, come, go and
// grow, and started again. No data is lost, no mount or loop device is leaked or made twice, no pod is stuck.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { CallFault } from '../../src/devcluster/csi-hostpath/faults.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '../../src/kube/resources.ts';
import { timePasses, until, untilSeen } from '../harness/until.ts';
import { claimed, ClaimsNode, namespace, never, type RecordedCall } from '../node/claims-node.ts';
import { mountsBeneath } from '../node/volumes-setup.ts';
import { randomFrom } from './fleet.ts';

const KILLS = Number(process.env['FAULT_ROUNDS'] ?? 6);
const SEED = Number(process.env['SEED'] ?? 1);
const PODS_WANTED = 10;
const CHUNK = 4096;
const MIB = 2 ** 20;
const SLOWED = [
  'NodeStageVolume',
  'NodePublishVolume',
  'NodeUnpublishVolume',
  'NodeUnstageVolume',
  'NodeExpandVolume',
] as const;
/** How often the kubelet is started and pods may still change before all is looked at. */
const LOOK_EVERY = 4;
/** A claim that grows under a running pod is noticed with the pod's next sync, minutes later. */
const PATIENCE_MS = 240_000;
const noLoops = existsSync('/dev/loop-control') ? false : 'this machine has no loop devices';

/** Ends with an error when something is missing that an earlier pod wrote; then writes, to the files first. */
const WRITE = `set -e; cd /data
slot() { dd if=/dev/xvda bs=${CHUNK} skip=$1 count=1 2>/dev/null; }
test $LAST = 0 || test -e done-$LAST
for d in done-*; do test -e $d || continue; n=\${d#done-}; sha256sum -c sum-$n; test "$(slot $n | sha256sum)" = "$(sha256sum < blob-$n)"; done
head -c ${CHUNK} /dev/urandom > blob-$THIS; sha256sum blob-$THIS > sum-$THIS
dd if=blob-$THIS of=/dev/xvda bs=${CHUNK} seek=$THIS conv=fsync; touch done-$THIS
trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done`;

type Slot = {
  readonly index: number;
  pod: { readonly name: string; readonly uid: string } | undefined;
  /** Of the pod that is there or was last. */
  generation: number;
  /** The last that was seen to have written. */
  confirmed: number;
  /** MiB each of the two claims was asked to have. */
  readonly sizes: [number, number];
};

describe(`claims while the kubelet is killed ${KILLS} times (seed ${SEED})`, { skip: noLoops }, () => {
  let scene: ClaimsNode;
  const random = randomFrom(SEED);
  const slots: Slot[] = Array.from({ length: PODS_WANTED }, (_, index) => ({
    index,
    pod: undefined,
    generation: 0,
    confirmed: 0,
    sizes: [8, 8],
  }));
  const volumes = new Map<string, { readonly pv: string; readonly handle: string }>();
  const claimsOf = ({ index }: Slot): [string, string] => [`data-${index}`, `raw-${index}`];
  const volume = (claim: string): { readonly pv: string; readonly handle: string } =>
    volumes.get(claim) ?? { pv: '', handle: '' };

  before(async () => {
    scene = await ClaimsNode.start({ driver: true });
    for (const slot of slots) {
      const [data, raw] = claimsOf(slot);
      await scene.claim(data);
      await scene.claim(raw, 'Block');
    }
  });
  after(() => scene?.stop());

  async function create(slot: Slot): Promise<void> {
    const [data, raw] = claimsOf(slot);
    const name = `pod-${slot.index}-${++slot.generation}`;
    const env = [
      { name: 'LAST', value: String(slot.confirmed) },
      { name: 'THIS', value: String(slot.generation) },
    ];
    const more = { container: { env }, spec: { restartPolicy: 'Never' as const } };
    const pod = await scene.create(name, [claimed(data), claimed(raw, 'raw')], WRITE, more);
    slot.pod = { name, uid: pod.metadata.uid ?? '' };
  }

  /** With no grace the API server forgets the pod at once, whether or not the kubelet runs. */
  async function remove(slot: Slot): Promise<void> {
    const name = slot.pod?.name ?? '';
    slot.pod = undefined;
    const grace = random(3) === 0 ? { gracePeriodSeconds: 0 } : {};
    await scene.node.client.delete(PODS, { namespace, name }, grace, never);
  }

  async function grow(slot: Slot): Promise<void> {
    const which = random(2);
    const storage = `${++slot.sizes[which as 0 | 1]}Mi`;
    const where = { namespace, name: claimsOf(slot)[which as 0 | 1] };
    await scene.node.client.patch(
      PERSISTENT_VOLUME_CLAIMS,
      where,
      { spec: { resources: { requests: { storage } } } },
      never,
    );
  }

  const some = (from: readonly Slot[]): Slot[] => from.filter(() => random(2) === 0).slice(0, 4);
  const running = (): Slot[] => slots.filter(({ pod }) => pod !== undefined);
  const empty = (): Slot[] => slots.filter(({ pod }) => pod === undefined);

  /**
   * One call of the driver takes long, before its work or after it, and things happen that lead to such calls, so that a
   * kill is likely to fall into one.
   */
  async function trouble(): Promise<void> {
    const call = SLOWED[random(SLOWED.length)] ?? 'NodeStageVolume';
    setFaults([{ call, do: 'delay', delayMs: 300 + random(400), after: random(2) === 0 }]);
    if (call === 'NodeExpandVolume') {
      await scene.node.kubelet.kill('SIGTERM');
      for (const slot of some(running())) await grow(slot);
      await scene.node.kubelet.start();
    } else if (call.startsWith('NodeUn')) for (const slot of some(running())) await remove(slot);
    else {
      if (empty().length < 3) for (const slot of some(running())) await remove(slot);
      for (const slot of empty()) await create(slot);
    }
    await timePasses(random(call === 'NodeExpandVolume' ? 1600 : 900), 'another instant');
  }

  /** What happens while nobody watches. */
  async function meanwhile(): Promise<void> {
    const slot = slots[random(PODS_WANTED)];
    if (slot === undefined || random(2) === 0) return;
    if (random(3) === 0) return grow(slot);
    return slot.pod === undefined ? create(slot) : remove(slot);
  }

  function setFaults(faults: readonly CallFault[]): void {
    const path = join(scene.dir, 'faults.json');
    writeFileSync(`${path}.new`, JSON.stringify({ faults }));
    renameSync(`${path}.new`, path);
  }

  const csiDir = (): string => join(scene.root, 'plugins/kubernetes.io/csi');
  const mountOf = (uid: string, pv: string): string =>
    join(scene.root, 'pods', uid, 'volumes/kubernetes.io~csi', pv, 'mount');

  /** What is to be mounted and looped of the pods that are wanted; nothing else may be. */
  function expected(): { mounts: string[]; loops: string[]; directories: string[] } {
    const there = slots.flatMap((slot) =>
      slot.pod === undefined ? [] : [{ uid: slot.pod.uid, names: claimsOf(slot) }],
    );
    const mounts = there.flatMap(({ uid, names: [data, raw] }) => {
      const [fs, block] = [volume(data), volume(raw)];
      const staged = createHash('sha256').update(fs.handle).digest('hex');
      return [
        mountOf(uid, fs.pv),
        join(csiDir(), 'hostpath.csi.kubelet-dev', staged, 'globalmount'),
        join(csiDir(), 'volumeDevices', block.pv, 'dev', uid),
        join(csiDir(), 'volumeDevices/publish', block.pv, uid),
      ];
    });
    const loops = there.flatMap(({ uid, names: [, raw] }) => [
      join(csiDir(), 'volumeDevices', volume(raw).pv, 'dev', uid),
      imageOf(volume(raw).handle),
    ]);
    return { mounts: mounts.sort(), loops: loops.sort(), directories: there.map(({ uid }) => uid).sort() };
  }
  const imageOf = (handle: string): string => join(scene.dir, 'data', handle, 'image');

  async function converged(when: string): Promise<void> {
    const sizesAsWanted = async (): Promise<void> => {
      for (const slot of slots)
        for (const [i, name] of claimsOf(slot).entries()) {
          const { status } = await scene.node.client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, never);
          if (slot.pod === undefined) continue; // grows with the next pod
          assert.equal(status?.capacity?.['storage'], `${slot.sizes[i as 0 | 1]}Mi`, `size of ${name}`);
          assert.equal(status?.allocatedResourceStatuses, undefined, name);
        }
    };
    const check = async (): Promise<boolean> => {
      const { items } = await scene.node.client.list(PODS, { namespace }, never);
      const states = items.map((p) => `${p.metadata.name} ${p.status?.phase}`).sort();
      const wanted = slots.flatMap(({ pod }) => (pod === undefined ? [] : [`${pod.name} Running`]));
      assert.deepEqual(states, wanted.sort());
      const { mounts, loops, directories } = expected();
      assert.deepEqual(mountsBeneath(scene.root).sort(), mounts);
      assert.deepEqual([...scene.loops(scene.root), ...scene.loops(scene.dir)].sort(), loops);
      assert.deepEqual(readdirSync(join(scene.root, 'pods')).sort(), directories);
      await sizesAsWanted();
      return slots.every(hasWritten);
    };
    await until(`all is as wanted ${when}`, check, PATIENCE_MS);
    for (const slot of slots) if (slot.pod !== undefined) slot.confirmed = slot.generation;
  }
  const hasWritten = (slot: Slot): boolean =>
    slot.pod === undefined ||
    existsSync(join(mountOf(slot.pod.uid, volume(claimsOf(slot)[0]).pv), `done-${slot.generation}`));

  it('two claims for each of ten pods', async () => {
    for (const slot of slots) await create(slot);
    for (const claim of slots.flatMap(claimsOf))
      await until(`${claim} is bound`, async () => {
        const { metadata, spec } = await scene.volumeOf(claim);
        volumes.set(claim, { pv: metadata.name, handle: spec.csi?.volumeHandle ?? '' });
        return true;
      });
    await converged('at first');
  });

  it('is as wanted after the kills', async (t) => {
    const record = join(scene.dir, 'calls.jsonl');
    const amid = new Map<string, number>();
    for (let kill = 1; kill <= KILLS; kill++) {
      await trouble();
      const bytes = statSync(record).size;
      await scene.node.kubelet.kill('SIGKILL');
      const killedAt = Date.now();
      await meanwhile();
      await scene.node.kubelet.start(scene.node.healthzPort);
      for (const call of cutOff(record, bytes, killedAt)) amid.set(call, (amid.get(call) ?? 0) + 1);
      if (kill % LOOK_EVERY === 0 || kill === KILLS) await converged(`after kill ${kill} (seed ${SEED})`);
    }
    t.diagnostic(`killed amid ${[...amid].map(([call, times]) => `${call} ${times}`).join(', ')}`);
    // A few kills may all miss, on a machine that is slow enough.
    if (KILLS >= 50) assert.ok(amid.size > 2, 'the kills hit');
  });

  /** Calls that had begun before the kill and ended after it. */
  const cutOff = (record: string, from: number, killedAt: number): string[] =>
    readFileSync(record)
      .subarray(from)
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as RecordedCall)
      .filter(({ call, atMs }) => call.startsWith('Node') && atMs <= killedAt)
      .map(({ call }) => call);

  it('leaves nothing, and every byte', async () => {
    setFaults([]);
    for (const slot of slots) if (slot.pod !== undefined) await remove(slot);
    await converged('at the end');
    await untilSeen(
      'nothing is in use',
      () => scene.inUse(),
      (seen) => seen.length === 0,
    );
    const left = (): string[] =>
      readdirSync(csiDir(), { recursive: true, encoding: 'utf8' }).filter(
        (name) => name.includes('pvc-') || name.includes('mount'),
      );
    await untilSeen('no directory of a volume is left', left, (seen) => seen.length === 0);
    for (const slot of slots) {
      const [files, image] = claimsOf(slot).map((claim) => volume(claim).handle);
      const device = readFileSync(imageOf(image ?? ''));
      assert.ok(device.length >= slot.sizes[1] * MIB, 'the device has grown');
      const directory = join(scene.dir, 'data', files ?? '', 'files');
      const written = readdirSync(directory).filter((name) => name.startsWith('done-'));
      assert.ok(written.includes(`done-${slot.confirmed}`));
      for (const name of written) {
        const generation = Number(name.slice('done-'.length));
        const chunk = device.subarray(generation * CHUNK, (generation + 1) * CHUNK);
        assert.ok(readFileSync(join(directory, `blob-${generation}`)).equals(chunk), `${directory} ${generation}`);
      }
    }
  });
});
