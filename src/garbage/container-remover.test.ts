// One place removes containers: what is told, taken away and asked, in which order, and how often.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { containerId, podUid } from '../core/ids.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import { KubeletError } from '../lib/errors.ts';
import { ContainerRemover, type RemovableContainer } from './container-remover.ts';

const root = mkdtempSync(join(tmpdir(), 'remover-'));
after(() => rmSync(root, { recursive: true, force: true }));
const { signal } = new AbortController();
const LABELS = {
  'io.kubernetes.pod.uid': 'u',
  'io.kubernetes.pod.name': 'p',
  'io.kubernetes.pod.namespace': 'ns',
};
let count = 0;
const removable: RemovableContainer = {
  id: containerId('id'),
  podUid: podUid('u'),
  podName: 'p',
  namespace: 'ns',
  name: 'c',
};

function setup(options: { readonly known?: boolean; readonly fails?: Error } = {}) {
  const { known = true, fails } = options;
  const did: string[] = [];
  const containerLogs = join(root, String(count++));
  mkdirSync(containerLogs);
  writeFileSync(join(containerLogs, 'p_ns_c-id.log'), '');
  const remover = new ContainerRemover(
    {
      runtime: {
        container: async () => {
          did.push('ask');
          return known ? { logPath: '/logs/asked', state: 'exited' } : undefined;
        },
        removeContainer: async (id) => {
          await new Promise((resolve) => setImmediate(resolve));
          did.push(`remove ${id}`);
          if (fails !== undefined) throw fails;
        },
      },
      removeLogs: async (path) => void did.push(`logs ${path}`),
      postStop: (uid, container, id) => void did.push(`postStop ${uid} ${container} ${id}`),
    },
    { containerLogs },
  );
  return { did, remover, links: () => readdirSync(containerLogs) };
}

const POST_STOP = 'postStop u c id';
const rows: readonly [string, Parameters<typeof setup>[0], RemovableContainer, boolean, readonly string[], number][] = [
  [
    'asks for the log where it is not known',
    {},
    removable,
    false,
    [POST_STOP, 'ask', 'logs /logs/asked', 'remove id'],
    0,
  ],
  [
    'takes the log it is told of',
    {},
    { ...removable, logPath: '/logs/0.log' },
    false,
    [POST_STOP, 'logs /logs/0.log', 'remove id'],
    0,
  ],
  ['a container without a log', {}, { ...removable, logPath: '' }, false, [POST_STOP, 'remove id'], 0],
  ['one the runtime forgot', { known: false }, removable, false, [POST_STOP, 'ask', 'remove id'], 0],
  ['keeps logs and link', {}, { ...removable, logPath: '/logs/0.log' }, true, [POST_STOP, 'remove id'], 1],
];

describe('removing a container', () => {
  for (const [name, options, container, keepLogs, expected, links] of rows)
    it(name, async () => {
      const t = setup(options);
      await t.remover.removeContainer(container, keepLogs, signal);
      assert.deepEqual(t.did, expected);
      assert.equal(t.links().length, links);
    });

  it('reads whose it is from the labels', async () => {
    const t = setup();
    await t.remover.remove(
      observedContainer('c', { id: 'id', labels: LABELS, logPath: '/logs/1.log', state: 'exited' }),
      false,
      signal,
    );
    assert.deepEqual(t.did, [POST_STOP, 'logs /logs/1.log', 'remove id']);
    assert.deepEqual(t.links(), []);
  });

  it('is asked for once while it is under way, and again when it failed', async () => {
    const t = setup({ fails: new KubeletError('unavailable', 'stuck') });
    const both = [
      t.remover.removeContainer(removable, true, signal),
      t.remover.removeContainer(removable, true, signal),
    ];
    for (const one of both) await assert.rejects(one, /stuck/);
    assert.deepEqual(t.did, [POST_STOP, 'remove id']);
    await assert.rejects(t.remover.removeContainer(removable, true, signal), /stuck/);
    assert.equal(t.did.length, 4);
  });
});
