import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod, SeLinuxOptions } from '../core/pod.ts';
import { contextOption, relabelsFiles, selinuxMountOf, type SelinuxMountFacts } from './selinux-mount.ts';

const level = 's0:c15,c25';
const FILES = 'system_u:object_r:container_file_t:s0';
const label = { label: `system_u:object_r:container_file_t:${level}` };

const podWith = (own: SeLinuxOptions | undefined, ...containers: (SeLinuxOptions | undefined)[]): Pod => ({
  metadata: { name: 'p' },
  spec: {
    ...(own === undefined ? {} : { securityContext: { seLinuxOptions: own } }),
    containers: containers.map((seLinuxOptions, i) => ({
      name: `c${i}`,
      volumeMounts: [{ name: 'data', mountPath: '/data' }],
      ...(seLinuxOptions === undefined ? {} : { securityContext: { seLinuxOptions } }),
    })),
  },
});
const facts = (change: Partial<SelinuxMountFacts> = {}): SelinuxMountFacts => ({
  pod: podWith({ level }, undefined),
  volume: 'data',
  accessModes: ['ReadWriteOncePod'],
  supported: true,
  anyMode: false,
  fileContext: FILES,
  ...change,
});
const recursive: Pod = {
  ...podWith({ level }, undefined),
  spec: {
    ...podWith({ level }, undefined).spec,
    securityContext: { seLinuxOptions: { level }, seLinuxChangePolicy: 'Recursive' },
  },
};

const rows: [string, Partial<SelinuxMountFacts>, ReturnType<typeof selinuxMountOf>][] = [
  ["the pod's own level", {}, label],
  ['a host without SELinux', { fileContext: undefined }, undefined],
  ['a driver that cannot', { supported: false }, undefined],
  ['a volume that others may have', { accessModes: ['ReadWriteOnce'] }, undefined],
  ['one of several modes', { accessModes: ['ReadWriteOncePod', 'ReadOnlyMany'] }, undefined],
  ['the same with the gate', { accessModes: ['ReadWriteOnce'], anyMode: true }, label],
  ['a pod that wants its files labelled', { pod: recursive }, undefined],
  ['nobody says a level', { pod: podWith({ type: 'container_t' }, undefined) }, undefined],
  [
    'the process has another type, files do not',
    { pod: podWith({ level, type: 'spc_t', role: 'r' }, undefined) },
    label,
  ],
  [
    'another user',
    { pod: podWith({ level, user: 'u' }, undefined) },
    { label: `u:object_r:container_file_t:${level}` },
  ],
  ["a container's level before the pod's", { pod: podWith({ level: 's0' }, { level }) }, label],
  [
    'two containers that differ',
    { pod: podWith(undefined, { level }, { level: 's0' }) },
    { problem: `multiple SELinux labels found: ${FILES},system_u:object_r:container_file_t:${level}` },
  ],
  ['only those that mount it', { volume: 'other' }, undefined],
];
for (const [what, change, expected] of rows)
  test(what, () => assert.deepEqual(selinuxMountOf(facts(change)), expected));

test('the option has its commas in quotes', () =>
  assert.equal(contextOption('u:r:t:s0:c1,c2'), 'context="u:r:t:s0:c1,c2"'));

const relabelled: [string, Parameters<typeof relabelsFiles>, boolean][] = [
  ['a file system with labels', [{ readOnly: false }, 'rw,seclabel,relatime'], true],
  ['one without', [{ readOnly: false }, 'rw,relatime'], false],
  ['nothing is known of it', [{ readOnly: false }, undefined], false],
  ['nothing may be written', [{ readOnly: true }, 'ro,seclabel'], false],
  ['labelled by mounting', [{ readOnly: false, selinuxLabel: 'l' }, 'rw,seclabel'], false],
];
for (const [what, args, expected] of relabelled)
  test(`files are labelled one by one: ${what}`, () => assert.equal(relabelsFiles(...args), expected));
