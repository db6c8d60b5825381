import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { humanDuration } from './age.ts';
import type { ApiObject, Json } from './objects.ts';
import { readyCell, statusCell } from './pod-cells.ts';
import { columnsOf, tableRow } from './table.ts';
import { resourceNamed } from './resources.ts';

test('durations read as kubectl prints them', () => {
  const s = 1000;
  const rows: [number, string][] = [
    [0, '0s'],
    [119 * s, '119s'],
    [120 * s, '2m'],
    [185 * s, '3m5s'],
    [600 * s, '10m'],
    [179 * 60 * s, '179m'],
    [3 * 3600 * s, '3h'],
    [3 * 3600 * s + 5 * 60 * s, '3h5m'],
    [47 * 3600 * s, '47h'],
    [49 * 3600 * s, '2d1h'],
    [9 * 86_400 * s, '9d'],
    [800 * 86_400 * s, '2y70d'],
    [-5 * s, '<invalid>'],
  ];
  for (const [ms, text] of rows) assert.equal(humanDuration(ms), text, text);
});

const pod = (status: Json, more: Json = {}, meta: Json = {}): ApiObject =>
  ({
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name: 'p', ...meta },
    spec: { containers: [{ name: 'a' }, { name: 'b' }], ...more },
    status,
  }) as ApiObject;
const waiting = (reason: string): Json => ({ name: 'a', state: { waiting: { reason } } });

test('the status of a pod in a word', () => {
  const rows: [string, ApiObject][] = [
    ['Pending', pod({ phase: 'Pending' })],
    ['ContainerCreating', pod({ phase: 'Pending', containerStatuses: [waiting('ContainerCreating')] })],
    ['CrashLoopBackOff', pod({ phase: 'Running', containerStatuses: [waiting('CrashLoopBackOff')] })],
    ['Running', pod({ phase: 'Running', containerStatuses: [{ ready: true, state: { running: {} } }] })],
    [
      'Completed',
      pod({ phase: 'Succeeded', containerStatuses: [{ state: { terminated: { reason: 'Completed', exitCode: 0 } } }] }),
    ],
    [
      'Error',
      pod({ phase: 'Failed', containerStatuses: [{ state: { terminated: { reason: 'Error', exitCode: 1 } } }] }),
    ],
    ['ExitCode:3', pod({ phase: 'Failed', containerStatuses: [{ state: { terminated: { exitCode: 3 } } }] })],
    ['Evicted', pod({ phase: 'Failed', reason: 'Evicted' })],
    ['Terminating', pod({ phase: 'Running' }, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' })],
    [
      'Init:0/2',
      pod(
        { phase: 'Pending', initContainerStatuses: [{ name: 'i', state: { running: {} } }] },
        { initContainers: [{ name: 'i' }, { name: 'j' }] },
      ),
    ],
    [
      'Init:Error',
      pod(
        {
          phase: 'Pending',
          initContainerStatuses: [{ name: 'i', state: { terminated: { reason: 'Error', exitCode: 1 } } }],
        },
        { initContainers: [{ name: 'i' }] },
      ),
    ],
    [
      'SchedulingGated',
      pod({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] }),
    ],
  ];
  for (const [word, object] of rows) assert.equal(statusCell(object), word);
  assert.equal(readyCell(pod({ containerStatuses: [{ ready: true }, { ready: false }] })), '1/2');
});

test('every resource has a row that fits its columns', () => {
  const cells =
    readFileSync(new URL('table-cells.ts', import.meta.url), 'utf8').match(/^ {2}'?[a-z.0-9/]+'?: /gm) ?? [];
  for (const line of cells) {
    const storage = line.trim().replaceAll(/['":]/g, '');
    const type = resourceNamed(storage);
    const row = tableRow(type, { kind: type.kind, apiVersion: 'v1', metadata: { name: 'x' } }, 'Metadata', 0);
    assert.equal((row['cells'] as unknown[]).length, columnsOf(type).length);
    assert.ok(!(row['cells'] as unknown[]).includes(undefined), storage);
  }
});
