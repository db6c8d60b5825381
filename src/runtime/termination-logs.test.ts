// One file for the termination message of each instance of a container, however often it is started.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import {
  facts,
  fakeCluster,
  fakeInfra,
  mountsFromSpec,
  recordingEvents,
  removerOn,
} from '../../test/golden/fixture.ts';
import { ScriptedRuntime } from '../../test/golden/scripted-runtime.ts';
import { PodRuntime } from './pod-runtime.ts';

const root = mkdtempSync(join(tmpdir(), 'kts-messages-'));
after(() => rmSync(root, { recursive: true }));

it('files of starts whose containers are gone do not pile up', async () => {
  writeFileSync(join(root, 'resolv.conf'), '');
  const pod: Pod = {
    metadata: { name: 'p', namespace: 'ns', uid: 'u' },
    spec: {
      containers: [{ name: 'a', image: 'i', terminationMessagePath: '/dev/termination-log' }],
      restartPolicy: 'Always',
      enableServiceLinks: false,
    },
  };
  let drawn = 0;
  const clock = new ManualClock(Date.UTC(2026, 0, 1), () => (drawn++ % 997) / 997);
  const scripted = new ScriptedRuntime({ podIp: '10.0.0.1' }, clock);
  const runtime = new PodRuntime(
    {
      cri: scripted.cri,
      images: { ensure: async () => ({ imageRef: 'ref' }) },
      volumes: mountsFromSpec(root, pod),
      resources: { cgroupParentOf: () => '/x' },
      remover: removerOn(scripted.cri, root),
      cluster: fakeCluster(),
      events: recordingEvents([]),
      infra: fakeInfra(clock, root),
    },
    facts(root),
  );
  const probes = { liveness: () => undefined, startup: () => undefined };
  const { signal } = new AbortController();
  const look = () => scripted.snapshot('u', 'p', 'ns');
  const files = (): string[] => readdirSync(join(root, 'pods', 'u', 'containers', 'a')).sort();
  for (let starts = 1; starts <= 10; starts++) {
    // As the garbage collector leaves it: the newest instance that ended.
    const snapshot = look();
    const containers = snapshot.containers.slice(0, 1);
    await runtime.syncPod({ pod, snapshot: { ...snapshot, containers }, pullSecrets: [], probes }, signal);
    assert.equal(scripted.startsOf('a'), starts);
    const instances = look().containers.slice(0, 2);
    const mounted = instances.flatMap(({ mounts }) => mounts.map(({ hostPath }) => hostPath.split('/').at(-1) ?? ''));
    assert.deepEqual(files(), mounted.filter((name) => /^[0-9a-f]{8}$/.test(name)).sort());
    scripted.exit('a', 1);
    await clock.advance(600_000);
  }
});
