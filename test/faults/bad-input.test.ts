// Nobody can bring the kubelet down by what he gives it: broken manifests, hostile objects from the API server, garbled
// answers from the runtime. The pods that are all right go on, and what is wrong is said, with its place.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { EVENTS } from '../../src/kube/resources.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';
import { ApiTamper } from './api-tamper.ts';
import { container } from '../cluster/scene.ts';
import { Fleet, isReady, podOf } from './fleet.ts';

const never = new AbortController().signal;
const good = (name: string): object => podOf(name, { containers: [container('main')] }, true);
const json = (change: object): string => JSON.stringify({ ...good('x'), ...change });

/** Name and content of a manifest, and what must be said about it. */
const MANIFESTS: readonly (readonly [string, string | Buffer, RegExp])[] = [
  ['binary.yaml', randomBytes(4096), /binary\.yaml/],
  ['nul.json', '\0\0\0\0', /nul\.json/],
  ['cut.json', json({}).slice(0, 60), /cut\.json/],
  ['bomb.yaml', yamlBomb(), /bomb\.yaml/],
  ['deep.json', `${'['.repeat(50_000)}${']'.repeat(50_000)}`, /deep\.json/],
  ['huge.yaml', `# ${'x'.repeat(11 << 20)}\n`, /huge\.yaml.*larger than/],
  ['list.yaml', '- a\n- b\n', /list\.yaml/],
  ['kind.yaml', 'apiVersion: v1\nkind: Nonsense\n', /kind\.yaml/],
  ['types.json', json({ spec: { containers: 'none', volumes: 7 } }), /types\.json.*spec\.containers/],
  ['nulls.json', json({ spec: { containers: [null], volumes: [null] } }), /nulls\.json.*spec\.containers\[0\]/],
  ['empty-spec.json', json({ spec: {} }), /empty-spec\.json.*spec\.containers/],
  ['paths.json', json({ metadata: { name: '../../etc', namespace: 'default' } }), /paths\.json.*metadata\.name/],
  [
    'numbers.json',
    json({ spec: { containers: [{ name: 'a', image: 'b', ports: [{ containerPort: 1e30 }] }] } }),
    /numbers\.json.*containerPort/,
  ],
  [
    'quantities.json',
    json({ spec: { containers: [container('a', { resources: { limits: { memory: '-1Ei' } } })] } }),
    /quantities\.json.*limits/,
  ],
  ['proto.json', `{"__proto__": {"spec": {}}, "apiVersion": "v1", "kind": "Pod", "constructor": {}}`, /proto\.json/],
];

/** What a list says is believed; everything else must make sense. */
const EMPTIED = [
  'RunPodSandbox',
  'CreateContainer',
  'ContainerStatus',
  'PodSandboxStatus',
  'Status',
  'Version',
  'ImageStatus',
  'ImageFsInfo',
  'ExecSync',
];

function yamlBomb(): string {
  const lines = ['a0: &a0 [x,x,x,x,x,x,x,x,x,x]'];
  for (let i = 1; i < 12; i++) lines.push(`a${i}: &a${i} [${Array.from({ length: 10 }, () => `*a${i - 1}`).join()}]`);
  return lines.join('\n');
}

/** As an API server would default it, but for the change. */
function apiPod(
  name: string,
  change: { readonly spec?: unknown; readonly metadata?: object; readonly status?: unknown },
): object {
  const usual = podOf(name, { containers: [container('main')], enableServiceLinks: true, restartPolicy: 'Always' });
  const { spec } = change;
  return {
    ...usual,
    metadata: { name, namespace: 'default', uid: `bad-${name}`, resourceVersion: '1' },
    ...change,
    ...('spec' in change
      ? { spec: typeof spec === 'object' && spec !== null ? { ...usual.spec, ...spec } : spec }
      : {}),
  };
}
const big = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`key-${i}`, 'v'.repeat(50)]));

/** Pods as no API server would send them. `said`: named in the log; the others are merely odd. */
const HOSTILE: readonly { readonly object: object; readonly said?: string }[] = [
  { object: apiPod('no-spec', { spec: null }) },
  { object: apiPod('text-spec', { spec: 'text' }), said: 'text-spec' },
  {
    object: apiPod('null-lists', { spec: { nodeName: NODE_NAME, containers: null, volumes: null, tolerations: null } }),
  },
  { object: apiPod('null-container', { spec: { containers: [null] } }), said: 'null-container' },
  { object: apiPod('nameless', { spec: { containers: [{}] } }), said: 'nameless' },
  { object: apiPod('escapes', { spec: { containers: [container('../../../../tmp/owned')] } }), said: 'escapes' },
  {
    object: apiPod('odd-volume', { spec: { containers: [container('a')], volumes: [{ name: '..', emptyDir: {} }] } }),
    said: 'odd-volume',
  },
  { object: apiPod('odd-status', { status: { phase: 7, conditions: 'none', containerStatuses: [null, {}] } }) },
  {
    object: apiPod('odd-times', {
      metadata: {
        name: 'odd-times',
        namespace: 'default',
        uid: 'bad-times',
        creationTimestamp: 'yesterday',
        resourceVersion: '1',
      },
    }),
  },
  {
    object: apiPod('many-labels', {
      metadata: { name: 'many-labels', namespace: 'default', uid: 'bad-labels', labels: big, resourceVersion: '1' },
    }),
  },
  {
    object: apiPod('odd-amounts', {
      spec: { containers: [container('a', { resources: { requests: { cpu: 'lots', memory: '-5' } } })] },
    }),
  },
  {
    object: apiPod('odd-probe', { spec: { containers: [container('a', { readinessProbe: { periodSeconds: -5 } })] } }),
  },
  { object: { kind: 'Pod', apiVersion: 'v1' } },
  { object: { metadata: { name: 'no-uid' }, spec: {} } },
  { object: { metadata: 'text' } },
];

describe('bad input', () => {
  let node: TestNode;
  let fleet: Fleet;
  const tamper = new ApiTamper();

  before(async () => {
    await tamper.start();
    node = await startNode({
      config: 'fileCheckFrequency: 1s',
      identity: (api, dir) => {
        const path = join(dir, 'kubeconfig');
        writeFileSync(path, tamper.kubeconfig(api.nodeKubeconfig(NODE_NAME), api.port), { mode: 0o600 });
        return ['--kubeconfig', path];
      },
    });
    fleet = new Fleet(node);
    fleet.start();
    await fleet.create('static', 'plain', true);
    await fleet.create('api', 'ready', false);
    await fleet.untilConverged('at first');
  });

  after(async () => {
    fleet?.stop();
    await node?.stop();
    await tamper.stop();
  });

  /** Old pods go on, new ones of both kinds start. */
  async function othersAreWell(tag: string): Promise<void> {
    await fleet.create(`static-${tag}`, 'plain', true);
    await fleet.create(`api-${tag}`, 'plain', false);
    for (const name of [`static-${tag}`, `api-${tag}`])
      await until(`${name} is ready`, async () => {
        const pod = await fleet.shown(name);
        return pod !== undefined && isReady(pod);
      }).catch(async (err: unknown) => {
        await fleet.assertAlive();
        throw err;
      });
    await fleet.untilConverged(`beside ${tag}`);
    assert.deepEqual([...fleet.flaps, ...fleet.nodeFlaps], []);
  }

  it('broken manifests', async () => {
    const running = await fleet.steadyContainers();
    for (const [name, content] of MANIFESTS) writeFileSync(join(node.manifests, name), content);
    mkdirSync(join(node.manifests, 'folder.yaml'));
    symlinkSync('/nowhere', join(node.manifests, 'dangling.yaml'));
    symlinkSync('loop.yaml', join(node.manifests, 'loop.yaml'));
    execFileSync('mkfifo', [join(node.manifests, 'pipe.yaml')]);
    await othersAreWell('manifests');
    for (const [name, , said] of MANIFESTS)
      await untilSeen(
        `something is said about ${name}`,
        async () => (await node.log()).split('\n'),
        (seen) => seen.some((line) => /^[EW]/.test(line) && said.test(line)),
      );
    await fleet.assertWentOn(running, 'beside broken manifests');
    for (const [name] of MANIFESTS) rmSync(join(node.manifests, name));
    await fleet.untilConverged('without them');
  });

  it('hostile objects from the API server', async () => {
    const running = await fleet.steadyContainers();
    tamper.slip(HOSTILE.map(({ object }) => object));
    await othersAreWell('hostile');
    tamper.breakWatches();
    await othersAreWell('hostile-list');
    for (const { said } of HOSTILE)
      if (said !== undefined)
        await untilSeen(
          `${said} is named`,
          async () => (await node.log()).split('\n'),
          (seen) => seen.some((line) => line.startsWith('E') && line.includes(`default/${said}`)),
        );
    await fleet.assertWentOn(running, 'beside hostile objects');
  });

  it('answers of the runtime in which nothing stands', async () => {
    const running = await fleet.steadyContainers();
    for (const verb of EMPTIED) node.cri.inject({ verb, fault: { do: 'empty' }, times: 2 });
    await fleet.create('static-empty', 'sidecar', true);
    await fleet.create('api-empty', 'ready', false);
    await fleet.untilConverged('with empty answers');
    node.cri.lift();
    await fleet.assertWentOn(running, 'beside empty answers');
    await fleet.assertNothingTwice();
  });

  it('says it where people look', async () => {
    const { items } = await node.client.list(EVENTS, { namespace: 'default' }, never);
    const reported = items.filter((e) => e.reason === 'FailedValidation').map((e) => e.message);
    assert.ok(
      reported.some((m) => m?.includes('null-container')),
      'an event names the broken pod',
    );
  });
});
