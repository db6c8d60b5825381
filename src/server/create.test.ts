import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { podUid, type PodUid } from '../core/ids.ts';
import type { Pod, PodStatus } from '../core/pod.ts';
import { aliveSnapshot } from '../core/snapshot.fixture.ts';
import { emptySnapshot, type PodSnapshot } from '../core/snapshot.ts';
import { accessOptions } from './access.ts';
import { logPlaces } from './endpoints.ts';
import { KnownPods } from './pods-view.ts';

const pod = (uid: string, name: string): Pod => ({
  metadata: { uid, name, namespace: 'ns' },
  spec: { containers: [] },
});

describe('pods as the server shows them', () => {
  const known = [pod('a', 'one'), pod('b', 'two')];
  const statuses = new Map<string, PodStatus>([['a', { phase: 'Running' }]]);
  const pods = new KnownPods({
    store: {
      all: () => known,
      byFullName: (name) => known.find((p) => `${p.metadata.name}_ns` === name),
      translate: (uid) => (uid === 'mirror-of-a' ? podUid('a') : uid),
    },
    statuses: { statusOf: (uid) => statuses.get(uid) },
  });

  it('with their latest status, or as they came', () => {
    assert.deepEqual(
      pods.all().map((p) => p.status?.phase),
      ['Running', undefined],
    );
  });

  it('one whose status is the same is the same', () => {
    const [before] = pods.all();
    assert.equal(pods.byName('ns', 'one'), before);
    statuses.set('a', { phase: 'Failed' });
    assert.equal(pods.byName('ns', 'one')?.status?.phase, 'Failed');
    statuses.set('a', { phase: 'Running' });
  });

  for (const [namespace, name, phase] of [
    ['ns', 'one', 'Running'],
    ['other', 'one', undefined],
    ['ns', 'none', undefined],
  ] as const)
    it(`by name ${namespace}/${name}`, () => assert.equal(pods.byName(namespace, name)?.status?.phase, phase));

  it('a mirror is its static pod', () => assert.equal(pods.translate('mirror-of-a'), 'a'));
});

describe('who may use the port', () => {
  const { authentication } = environmentOf().config;
  for (const [clientCAFile, clientCa] of [
    ['', false],
    ['/ca.crt', true],
  ] as const)
    it(`client CA ${clientCAFile === '' ? 'none' : clientCAFile}`, () => {
      const x509 = { clientCAFile };
      const env = environmentOf({
        config: { authentication: { ...authentication, x509 } },
        flags: { strictStreamAuthorization: true },
      });
      const { mode, ...options } = accessOptions(env);
      assert.equal(mode, env.config.authorization.mode);
      assert.deepEqual(options, {
        nodeName: 'node-1',
        clientCa,
        webhookAuthentication: authentication.webhook.enabled,
        anonymous: authentication.anonymous.enabled,
        strictStreams: true,
      });
    });
});

describe('the log of a container', () => {
  const running = aliveSnapshot('a');
  const snapshots = new Map<PodUid, PodSnapshot>([
    [podUid('a'), running],
    [podUid('b'), emptySnapshot(podUid('b'), 'two', 'ns')],
  ]);
  const places = (logPath: string | undefined) =>
    logPlaces({
      runtime: {
        containerStatus: async () => ({ status: logPath === undefined ? undefined : { logPath } }) as never,
      },
      pods: { translate: (uid) => podUid(uid === 'mirror' ? 'a' : uid) },
      observed: { get: (uid) => snapshots.get(uid) },
    });
  const id = running.containers[0]?.id ?? '';

  for (const [name, uid, containerId, isRunning] of [
    ['runs', 'a', id, true],
    ['asked for by its mirror', 'mirror', id, true],
    ['another container', 'a', 'other', false],
    ['a pod without containers', 'b', id, false],
    ['a pod nobody saw', 'c', id, false],
  ] as const)
    it(name, () => assert.equal(places('').isRunning(pod(uid, 'x'), containerId), isRunning));

  for (const [logPath, path] of [
    ['/var/log/pods/x/0.log', '/var/log/pods/x/0.log'],
    [undefined, ''],
  ] as const)
    it(`is at "${path}"`, async () =>
      assert.equal(await places(logPath).pathOf('id', new AbortController().signal), path));
});
