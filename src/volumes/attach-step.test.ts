import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { childScope } from '../lib/abort.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { attachVolume, type AttachStepDeps } from './attach-step.ts';
import type { ResolvedVolume, VolumePlugin } from './plugin.ts';
import { StepOperations, type StepMetrics } from './step-operations.ts';
import { VolumeEntry, type Running } from './volume-entry.ts';

const pod: Pod = { metadata: { name: 'p', uid: 'u' }, spec: { containers: [] } };

const rows: [who: string, byController: boolean, here: boolean, expected: string[], counted: string][] = [
  ['a controller attaches it', true, true, ['waits for name'], 'verify_controller_attached_volume true'],
  [
    'this node can',
    false,
    true,
    ['SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume "pv" ', 'attached at ""'],
    'volume_attach true',
  ],
  ['nobody can', false, false, ['attaching volumes from the kubelet is not supported'], 'volume_attach false'],
];
for (const [who, controllerAttaches, attachesOnNode, expected, counted] of rows)
  test(who, async () => {
    const seen: string[] = [];
    const entry = new VolumeEntry('data');
    const resolved = {
      plugin: { name: 'test/disk', attachesOnNode } as VolumePlugin,
      specName: 'pv',
    } as ResolvedVolume;
    entry.resolved = resolved;
    entry.attachedName = 'name';
    const told: string[] = [];
    const metrics: StepMetrics = {
      observe: ({ operation, succeeded }) => void told.push(`${operation} ${succeeded}`),
      forceCleaned: () => undefined,
    };
    const operations = new StepOperations({ clock: new ManualClock(), metrics }, entry, 'mount');
    const scope = childScope(new AbortController().signal);
    const running: Running = { step: 'mount', scope, sinceMs: 0, doing: '', operations };
    const deps: AttachStepDeps = {
      controllerAttaches,
      attachments: {
        whenAttached: (name) => {
          seen.push(`waits for ${name}`);
          assert.equal(running.awaitsAttach, 'name');
          return Promise.resolve('/dev/x');
        },
      },
      events: { pod: (_pod, _type, reason, message) => void seen.push(`${reason}: ${message}`) },
      onChange: () => undefined,
    };
    await attachVolume(deps, entry, running, { pod, resolved }).then(
      (path) => path === '/dev/x' || seen.push(`attached at "${path}"`),
      (err: Error) => seen.push(err.message),
    );
    assert.deepEqual(seen, expected);
    assert.deepEqual(told, [counted]);
  });
