// Changes of running pods through doors of their own: ephemeral containers, new resources, eviction. Goes on with the pods of
// the suite that calls it.
import { strict as assert } from 'node:assert';
import { it } from 'node:test';
import { until } from '../../harness/until.ts';
import { dig } from './client.ts';
import { podBody, type Scene } from './scene.ts';

export function resizeContract(s: Scene): void {
  it('adds ephemeral containers and resizes through their own doors', async () => {
    const debug = await s.api.strategic(`${s.path}/pods/defaults/ephemeralcontainers`, {
      spec: { ephemeralContainers: [{ name: 'dbg', image: 'localhost/busybox:1', stdin: true, tty: true }] },
    });
    assert.equal(debug.status, 200, JSON.stringify(debug.body));
    assert.equal(dig(debug.body, 'spec', 'ephemeralContainers', 0, 'terminationMessagePath'), '/dev/termination-log');
    assert.equal(dig(debug.body, 'metadata', 'generation'), 3);
    await s.api.post(
      `${s.path}/pods`,
      podBody('size', {
        nodeName: 'sized',
        containers: [{ name: 'web', image: 'x', resources: { requests: { cpu: '100m' }, limits: { cpu: '200m' } } }],
      }),
    );
    const resize = { spec: { containers: [{ name: 'web', resources: { requests: { cpu: '150m' } } }] } };
    const early = await s.api.strategic(`${s.path}/pods/size/resize`, resize);
    assert.equal(early.status, 403);
    assert.match(String(early.body['message']), /node "sized" not found/);
    const allocatable = { cpu: '4', memory: '8Gi', pods: '110' };
    const declaredFeatures = ['InPlacePodLevelResourcesVerticalScaling'];
    const status = { allocatable, capacity: allocatable, declaredFeatures };
    await s.api.post('/api/v1/nodes', { metadata: { name: 'sized' }, status });
    const sized = await until('the server knows the node', async () => {
      const answer = await s.api.strategic(`${s.path}/pods/size/resize`, resize);
      return answer.status === 403 ? undefined : answer;
    });
    assert.equal(sized.status, 200, JSON.stringify(sized.body));
    assert.equal(dig(sized.body, 'spec', 'containers', 0, 'resources', 'requests', 'cpu'), '150m');
    assert.equal(dig(sized.body, 'metadata', 'generation'), 2);
  });

  it('refuses resizes that change more, and says what', async () => {
    const web = { name: 'web', image: 'x', resources: { requests: { cpu: '100m' }, limits: { cpu: '200m' } } };
    const spec = { nodeName: 'sized', containers: [web, { ...web, name: 'side' }] };
    await s.api.post(`${s.path}/pods`, podBody('firm', spec));
    const to = (resources: object): object => ({ containers: [{ name: 'web', resources }] });
    const path = `${s.path}/pods/firm/resize`;
    const strategic: readonly (readonly [object, RegExp])[] = [
      [
        { containers: [{ ...web, name: 'third' }] },
        /spec.containers: Forbidden: containers may not be added or removed/,
      ],
      [{ containers: [{ name: 'side', $patch: 'delete' }] }, /containers may not be added or removed on resize/],
      [
        to({ limits: { cpu: '50m' } }),
        /requests: Invalid value: "100m": must be less than or equal to cpu limit of 50m/,
      ],
      [to({ limits: { cpu: null } }), /resources.limits: Forbidden: resource limits cannot be removed/],
      [to({ limits: { 'a.com/g': '1' } }), /spec: Forbidden: only cpu and memory resources are mutable/],
      [to({ limits: { 'ephemeral-storage': '1Gi' } }), /spec: Forbidden: only cpu and memory resources are mutable/],
    ];
    for (const [asked, complaint] of strategic) {
      const refused = await s.api.strategic(path, { spec: asked });
      assert.equal(refused.status, 422, JSON.stringify([asked, refused.body]));
      assert.match(String(refused.body['message']), complaint);
    }
    const swapped = await s.api.jsonPatch(path, [
      { op: 'move', from: '/spec/containers/0', path: '/spec/containers/1' },
    ]);
    assert.equal(swapped.status, 422, JSON.stringify(swapped.body));
    assert.match(String(swapped.body['message']), /containers\[0\].name: Forbidden: containers may not be renamed/);
    const unmoved = await s.api.strategic(path, { spec: { terminationGracePeriodSeconds: 1, hostNetwork: true } });
    assert.equal(unmoved.status, 200, 'what is not about resources is dropped');
    assert.equal(dig(unmoved.body, 'metadata', 'generation'), 1);
  });

  it('resizes pods as a whole', async () => {
    const amounts = (cpu: string): object => ({ requests: { cpu, memory: '8Mi' }, limits: { cpu, memory: '16Mi' } });
    const containers = [{ name: 'web', image: 'x', resources: { requests: { cpu: '100m' } } }];
    await s.api.post(`${s.path}/pods`, podBody('whole', { nodeName: 'sized', containers, resources: amounts('200m') }));
    const resize = (resources: object | null): ReturnType<typeof s.api.strategic> =>
      s.api.strategic(`${s.path}/pods/whole/resize`, { spec: { resources } });
    const grown = await resize(amounts('300m'));
    assert.equal(grown.status, 200, JSON.stringify(grown.body));
    assert.deepEqual(dig(grown.body, 'spec', 'resources'), amounts('300m'));
    assert.equal(dig(grown.body, 'metadata', 'generation'), 2);
    for (const [asked, complaint] of [
      [null, /pod-level resources cannot be removed/],
      [{ limits: { memory: null } }, /pod-level resource limits cannot be removed/],
      [amounts('50m'), /must be greater than or equal to aggregate container requests of 100m/],
    ] as const) {
      const refused = await resize(asked);
      assert.equal(refused.status, 422, JSON.stringify(refused.body));
      assert.match(String(dig(refused.body, 'message')), complaint);
    }
  });

  it('evicts', async () => {
    const evicted = await s.api.post(`${s.path}/pods/size/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'size' },
    });
    assert.equal(evicted.status, 201);
    const pod = await s.api.get(`${s.path}/pods/size`);
    assert.equal(typeof dig(pod.body, 'metadata', 'deletionTimestamp'), 'string');
  });
}
