// A sync says when it begins to wait for somebody else: others may start meanwhile.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Container, Pod, PodSpec } from '../core/pod.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { ScriptedRuntime } from '../../test/golden/scripted-runtime.ts';
import {
  facts,
  fakeCluster,
  fakeInfra,
  mountsFromSpec,
  recordingEvents,
  removerOn,
} from '../../test/golden/fixture.ts';
import type { ImageRequest } from './needs.ts';
import { PodRuntime } from './pod-runtime.ts';

let root = '';
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'kts-waits-'));
  await writeFile(join(root, 'resolv.conf'), 'nameserver 192.0.2.1\n');
});
after(() => rm(root, { recursive: true, force: true }));

const hook = { exec: { command: ['x'] } };
const podOf = (container: Partial<Container> = {}, spec: Partial<PodSpec> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u' },
  spec: {
    containers: [{ name: 'a', image: 'i', ...container }],
    enableServiceLinks: false,
    restartPolicy: 'Always',
    ...spec,
  },
});

function bench() {
  const clock = new ManualClock();
  const scripted = new ScriptedRuntime({ podIp: '10.0.0.1', execExits: { x: 0 } }, clock);
  const ensured: ImageRequest[] = [];
  let told = 0;
  const runtime = new PodRuntime(
    {
      cri: scripted.cri,
      images: { ensure: (request) => (ensured.push(request), Promise.resolve({ imageRef: 'r' })) },
      volumes: mountsFromSpec(root, podOf()),
      resources: { cgroupParentOf: () => '/x' },
      remover: removerOn(scripted.cri, root),
      cluster: fakeCluster(),
      events: recordingEvents([]),
      infra: fakeInfra(clock, root),
    },
    facts(root),
  );
  const probes = { liveness: () => undefined, startup: () => undefined };
  const sync = async (pod: Pod): Promise<number> => {
    const snapshot = scripted.snapshot('u', 'p', 'ns');
    const request = { pod, snapshot, pullSecrets: [], probes, onWaiting: () => void told++ };
    await runtime.syncPod(request, new AbortController().signal);
    return told;
  };
  return { sync, ensured, told: () => told };
}

describe('what a sync waits for is told before', () => {
  const rows: readonly [string, Pod, number][] = [
    ['nothing', podOf(), 0],
    ['a post-start hook', podOf({ lifecycle: { postStart: hook } }), 1],
    ['claims', podOf({}, { resourceClaims: [{ name: 'gpu', resourceClaimName: 'c' }] }), 1],
  ];
  for (const [what, pod, times] of rows) it(what, async () => assert.equal(await bench().sync(pod), times));

  it('a container that is to end', async () => {
    const { sync } = bench();
    assert.equal(await sync(podOf()), 0);
    assert.equal(await sync(podOf({ image: 'another' })), 1);
  });

  it('a registry: the puller says when', async () => {
    const { sync, ensured, told } = bench();
    await sync(podOf());
    ensured[0]?.onPull?.();
    assert.equal(told(), 1);
  });
});
