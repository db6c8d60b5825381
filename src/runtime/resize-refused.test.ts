// What a sync says of a resize that the runtime refuses.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
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
import type { ResizeRecords } from './needs.ts';
import { PodRuntime } from './pod-runtime.ts';

const sized = (cpu: string): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u' },
  spec: {
    containers: [{ name: 'a', image: 'i', resources: { limits: { cpu } } }],
    enableServiceLinks: true,
    restartPolicy: 'Always',
  },
});

const records: ResizeRecords = {
  actuatedOf: () => ({ containers: new Map([['a', { limits: { cpu: '1' } }]]) }),
  setActuated: () => undefined,
  setActuatedPod: () => undefined,
  writePod: () => Promise.resolve(),
  memoryUsageOf: () => Promise.resolve(undefined),
};

it('a resize that the runtime refuses is told with the full text of its answer', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'kts-resize-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  await writeFile(join(root, 'resolv.conf'), 'nameserver 192.0.2.1\n');
  const clock = new ManualClock();
  const scripted = new ScriptedRuntime({ podIp: '10.0.0.1' }, clock);
  const refused = new GrpcError(GrpcCode.Unknown, 'cannot update a stopped container');
  const cri = { ...scripted.cri, updateContainerResources: () => Promise.reject(refused) };
  const runtime = new PodRuntime(
    {
      cri,
      images: { ensure: () => Promise.resolve({ imageRef: 'ref' }) },
      volumes: mountsFromSpec(root, sized('1')),
      resources: { cgroupParentOf: () => '/x', resize: records },
      remover: removerOn(cri, root),
      cluster: fakeCluster(),
      events: recordingEvents([]),
      infra: fakeInfra(clock, root),
    },
    facts(root),
  );
  const sync = async (pod: Pod): Promise<string | undefined> => {
    const probes = { liveness: () => undefined, startup: () => undefined };
    const request = { pod, snapshot: scripted.snapshot('u', 'p', 'ns'), pullSecrets: [], probes };
    return (await runtime.syncPod(request, new AbortController().signal)).resizeError;
  };
  assert.equal(await sync(sized('1')), undefined);
  assert.equal(await sync(sized('2')), 'rpc error: code = Unknown desc = cannot update a stopped container');
});
