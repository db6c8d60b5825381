import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '../core/ids.ts';
import { podUidOfDir } from '../host/cgroups/cgroup-names.ts';
import { memberIdOf, takeCensus } from './census.ts';

const ID = '1080f683940f9f49460e4b1520a3f89b205c9f5ffa2423f24e080774525be162';

for (const [dir, id] of [
  [ID, ID],
  [`cri-containerd-${ID}.scope`, ID],
  [`crio-${ID}.scope`, ID],
  [`crio-${ID}`, ID],
  [`crio-conmon-${ID}.scope`, undefined],
  [`crio-conmon-${ID}`, undefined],
  ['some-slice.slice', undefined],
] as const)
  test(`member ${dir.slice(0, 24)}`, () => assert.equal(memberIdOf(dir), id));

const tree = (dirs: Record<string, string[]>) => ({ children: (path: string) => Promise.resolve(dirs[path] ?? []) });

test('pods of all classes, on the plain driver', async () => {
  const census = await takeCensus(
    tree({
      '/kubepods': ['burstable', 'besteffort', 'podaa-1'],
      '/kubepods/burstable': ['podbb-2'],
      '/kubepods/podaa-1': [ID],
    }),
    {
      pods: '/kubepods',
      tiers: ['/kubepods', '/kubepods/burstable', '/kubepods/besteffort'],
      podUidOf: (dir) => podUidOfDir(dir, 'cgroupfs'),
      system: [],
    },
  );
  assert.deepEqual([...census.keys()].sort(), ['aa-1', 'bb-2']);
  assert.equal(census.get(podUid('aa-1'))?.members.get(ID), `/kubepods/podaa-1/${ID}`);
  assert.equal(census.get(podUid('bb-2'))?.path, '/kubepods/burstable/podbb-2');
});

test('pods on the systemd driver', async () => {
  const burstable = '/kubepods.slice/kubepods-burstable.slice';
  const pod = `${burstable}/kubepods-burstable-podbb_2.slice`;
  const census = await takeCensus(
    tree({
      '/kubepods.slice': ['kubepods-burstable.slice'],
      [burstable]: ['kubepods-burstable-podbb_2.slice'],
      [pod]: [`cri-containerd-${ID}.scope`],
    }),
    {
      pods: '/kubepods.slice',
      tiers: ['/kubepods.slice', burstable],
      podUidOf: (dir) => podUidOfDir(dir, 'systemd'),
      system: [],
    },
  );
  assert.equal(census.get(podUid('bb-2'))?.members.get(ID), `${pod}/cri-containerd-${ID}.scope`);
});
