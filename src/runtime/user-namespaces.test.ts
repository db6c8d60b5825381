// Slots for user namespaces: one per pod, the same after a restart, never shared.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { silentLogger } from '../lib/logger.ts';
import { defaultIdRange, idRangeProblem, parseSubIds, UserNamespaces } from './user-namespaces.ts';

const IDS = 65_536;
let root = '';
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'kts-userns-'));
});
after(() => rm(root, { recursive: true, force: true }));

const podOf = (uid: string, hostUsers?: boolean): Pod => ({
  metadata: { name: uid, namespace: 'ns', uid },
  spec: { containers: [], ...(hostUsers === undefined ? {} : { hostUsers }) },
});
const make = (slots: number): UserNamespaces =>
  new UserNamespaces({ rootDir: root, idsPerPod: IDS, maxPods: slots, range: { first: IDS, length: IDS * slots } });
const hostId = async (users: UserNamespaces, uid: string): Promise<number | undefined> =>
  (await users.mappingOf(podOf(uid, false), true))?.uids[0]?.hostId;

const noSandbox = (): Promise<undefined> => Promise.resolve(undefined);

describe('user namespaces', () => {
  it('only pods that want one', async () => {
    assert.equal(await make(1).mappingOf(podOf('x'), true), undefined);
    assert.equal(await make(1).mappingOf(podOf('x', true), true), undefined);
  });
  it('says who cannot give a pod one', async () => {
    const refused = (handler?: string): Promise<unknown> => make(1).mappingOf(podOf('x', false), false, handler);
    const message = (who: string): string =>
      `can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces`;
    await assert.rejects(refused(), { message: message('runtime') });
    await assert.rejects(refused('gvisor'), { message: message('RuntimeClass handler "gvisor"') });
  });
  it('takes back the slots of pods that nobody knows any more', async () => {
    const users = make(2);
    await hostId(users, 'kept');
    await hostId(users, 'gone');
    users.keepOnly(new Set(['kept']));
    assert.equal(await hostId(users, 'new'), 2 * IDS);
    assert.equal(await hostId(users, 'kept'), IDS);
    for (const uid of ['kept', 'gone', 'new']) await users.release(uid);
  });
  it('one slot each, kept over a restart, free after release', async () => {
    const users = make(2);
    assert.equal(await hostId(users, 'a'), IDS);
    assert.equal(await hostId(users, 'a'), IDS);
    assert.equal(await hostId(users, 'b'), 2 * IDS);
    await assert.rejects(hostId(users, 'c'), /could not find an empty slot to allocate a user namespace/);
    const record = JSON.parse(await readFile(join(root, 'pods', 'a', 'userns'), 'utf8')) as unknown;
    const one = [{ hostId: IDS, containerId: 0, length: IDS }];
    assert.deepEqual(record, { uidMappings: one, gidMappings: one });
    const again = make(2);
    await again.restore(['b', 'nobody'], { firstIdOf: noSandbox, log: silentLogger });
    assert.equal(await hostId(again, 'd'), IDS, 'restored slots are taken');
    assert.equal(await hostId(again, 'b'), 2 * IDS);
    await again.release('b');
    assert.equal(await hostId(again, 'c'), 2 * IDS);
  });
  it('a record that makes no sense is refused, not guessed', async () => {
    await mkdir(join(root, 'pods', 'bad'), { recursive: true });
    await writeFile(join(root, 'pods', 'bad', 'userns'), '{"uidMappings":[{"hostId":5}]}');
    await assert.rejects(hostId(make(2), 'bad'), /outside the range in use/);
  });
  describe('with a damaged record of one pod', () => {
    const damaged = async (uid: string): Promise<string> => {
      const path = join(root, 'pods', uid, 'userns');
      await mkdir(join(root, 'pods', uid), { recursive: true });
      await writeFile(path, 'null');
      return path;
    };
    const restored = async (uid: string, firstIdOf: () => Promise<number | undefined>) => {
      const users = make(2);
      const logged: string[] = [];
      const log = {
        ...silentLogger,
        error: (_: string, f?: object) => void logged.push((f as { path?: string }).path ?? ''),
      };
      await users.restore([uid, 'nobody'], { firstIdOf, log });
      return { users, logged };
    };

    it('the range of its sandbox counts, is not handed out, and is recorded again', async () => {
      const path = await damaged('runs');
      const { users, logged } = await restored('runs', () => Promise.resolve(IDS));
      assert.deepEqual(logged, [path]);
      assert.equal(await hostId(users, 'other'), 2 * IDS);
      assert.equal(await hostId(users, 'runs'), IDS);
      assert.match(await readFile(path, 'utf8'), new RegExp(`"hostId":${IDS}`));
      for (const uid of ['runs', 'other']) await users.release(uid);
    });
    it('the record counts as none without a sandbox', async () => {
      await damaged('over');
      const { users } = await restored('over', noSandbox);
      assert.equal(await hostId(users, 'other'), IDS);
      assert.equal(await hostId(users, 'over'), 2 * IDS);
      for (const uid of ['over', 'other']) await users.release(uid);
    });
    it('nobody gets a new range while the runtime cannot tell', async () => {
      await damaged('unknown');
      const { users } = await restored('unknown', () => Promise.reject(new Error('not now')));
      await assert.rejects(hostId(users, 'other'), /while that of pod unknown is not known: .*userns is not usable/);
      await assert.rejects(hostId(users, 'unknown'), /pods\/unknown\/userns is outside the range in use/);
      users.keepOnly(new Set());
      assert.equal(await hostId(users, 'other'), IDS);
      await users.release('other');
    });
  });
  it('ranges', () => {
    assert.deepEqual(defaultIdRange(IDS), { first: IDS, length: 2 ** 32 - IDS });
    assert.deepEqual(parseSubIds('0: kubelet 65536 7208960\n', '0: kubelet 65536 7208960\n'), {
      first: IDS,
      length: 7_208_960,
    });
    assert.throws(() => parseSubIds('0: kubelet 65536 7208960', '0: kubelet 131072 7208960'), /mismatched/);
    assert.throws(() => parseSubIds('0: kubelet 1 2\n1: kubelet 3 4', '0: kubelet 1 2'), /exactly one range/);
    assert.equal(idRangeProblem({ first: IDS, length: IDS * 110 }, IDS, 110), undefined);
    for (const [range, problem] of [
      [{ first: 1, length: IDS }, /not a multiple/],
      [{ first: IDS, length: IDS + 1 }, /length 65537 is not a multiple/],
      [{ first: 0, length: IDS }, /greater or equal/],
      [{ first: IDS, length: IDS }, /not enough to support 110 pods/],
    ] as const)
      assert.match(idRangeProblem(range, IDS, 110) ?? '', problem);
  });
});
