import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { childScope } from '../lib/abort.ts';
import { attachVolume, type AttachStepDeps } from './attach-step.ts';
import type { ResolvedVolume, VolumePlugin } from './plugin.ts';
import { VolumeEntry, type Running } from './volume-entry.ts';

const pod: Pod = { metadata: { name: 'p', uid: 'u' }, spec: { containers: [] } };

const rows: [string, boolean, boolean, string[]][] = [
  ['a controller attaches it', true, true, ['waits for name']],
  [
    'this node can',
    false,
    true,
    ['SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume "pv" ', 'attached at ""'],
  ],
  ['nobody can', false, false, ['attaching volumes from the kubelet is not supported']],
];
for (const [who, controllerAttaches, attachesOnNode, expected] of rows)
  test(who, async () => {
    const seen: string[] = [];
    const entry = new VolumeEntry('data');
    const resolved = { plugin: { attachesOnNode } as VolumePlugin, specName: 'pv' } as ResolvedVolume;
    entry.resolved = resolved;
    entry.attachedName = 'name';
    const running: Running = { step: 'mount', scope: childScope(new AbortController().signal), sinceMs: 0, doing: '' };
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
  });
