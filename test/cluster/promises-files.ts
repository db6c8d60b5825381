// Promises about files: who may read them, what a missing or vanishing source does, and single files of a volume.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { CONFIG_MAPS } from '../../src/kube/resources.ts';
import type { Container, PodSpec } from '../../src/core/pod.ts';
import { container, EMPTY, never, Scene, shell, statusOf, WORK } from './scene.ts';

const TOKEN = [
  { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds: 3600 } }] } },
];
const AT = [{ name: 'token', mountPath: '/t' }];
const somebody = (name: string, uid: number | undefined): Container =>
  container(name, { volumeMounts: AT, ...(uid === undefined ? {} : { securityContext: { runAsUser: uid } }) });

/** Mode, owner and group of the token, by who runs in the pod. */
const TOKENS: readonly (readonly [name: string, spec: Partial<PodSpec>, token: string])[] = [
  ['token-of-one', { containers: [somebody('main', 1000), somebody('b', 1000)] }, '600 1000 0'],
  ['token-of-two', { containers: [somebody('main', 1000), somebody('b', 1001)] }, '644 0 0'],
  ['token-of-root', { containers: [somebody('main', undefined)] }, '644 0 0'],
  [
    'token-of-a-group',
    { securityContext: { fsGroup: 10_000 }, containers: [somebody('main', undefined)] },
    '640 0 10000',
  ],
  [
    'token-of-one-in-a-group',
    { securityContext: { fsGroup: 10_000, runAsUser: 1000 }, containers: [somebody('main', undefined)] },
    '640 1000 10000',
  ],
];

export function filesSuite(scene: () => Scene): void {
  for (const [name, spec, token] of TOKENS)
    it(`the mode and owner of a ${name.replaceAll('-', ' ')}`, async () => {
      const s = scene();
      await s.pod(name, { volumes: TOKEN, ...spec });
      const pod = await s.ready(name);
      assert.equal((await s.exec(pod, 'stat -L -c "%a %u %g" /t/token')).trim(), token);
      await s.delete(name, { gracePeriodSeconds: 0 });
    });

  it('what an optional source no longer has goes from the volume', async () => {
    const s = scene();
    await s.configMap('fading', { one: '1', two: '2' });
    const volumes = [{ name: 'v', configMap: { name: 'fading', optional: true } }];
    await s.pod('fading', {
      volumes,
      containers: [container('main', { volumeMounts: [{ name: 'v', mountPath: '/v' }] })],
    });
    const pod = await s.ready('fading');
    const becomes = (files: string): Promise<string> =>
      s.exec(
        pod,
        `for i in $(seq 80); do [ "$(ls /v | tr '\\n' ' ')" = "${files}" ] && exit; sleep 0.1; done; ls /v >&2; exit 1`,
      );
    await becomes('one two ');
    await s.patch(CONFIG_MAPS, 'fading', { data: { two: null, three: '3' } });
    await becomes('one three ');
    await s.node.client.delete(CONFIG_MAPS, { namespace: s.namespace, name: 'fading' }, {}, never);
    await becomes('');
  });

  it('a key that must be there and is not keeps the pod waiting, with its name', async () => {
    const s = scene();
    await s.configMap('no-key', { one: '1' });
    const volumes = [{ name: 'v', configMap: { name: 'no-key', items: [{ key: 'absent', path: 'x' }] } }];
    const created = await s.pod('no-key', {
      volumes,
      containers: [container('main', { volumeMounts: [{ name: 'v', mountPath: '/v' }] })],
    });
    await s.event(created, 'FailedMount', ({ message }) => message?.includes('absent') === true);
    await s.patch(CONFIG_MAPS, 'no-key', { data: { absent: 'here now' } });
    await s.ready('no-key');
  });

  it('a single file over an existing one, a directory that is made, and the rest as it was', async () => {
    const s = scene();
    await s.configMap('single', { 'a.conf': 'mine' });
    const volumes = [...EMPTY, { name: 'conf', configMap: { name: 'single' } }];
    const volumeMounts = [
      { name: 'conf', mountPath: '/etc/group', subPath: 'a.conf' },
      { name: 'work', mountPath: '/deep/er', subPath: 'made/for/it' },
      WORK,
    ];
    await s.pod('single', { volumes, containers: [container('main', { volumeMounts })] });
    const pod = await s.ready('single');
    assert.equal(
      await s.exec(pod, 'cat /etc/group; echo; head -c4 /etc/passwd; touch /deep/er/x; ls /scratch/made/for/it'),
      'mine\nrootx\n',
    );
  });

  it('a container starts again although it removed the directory it was given', async () => {
    const s = scene();
    const volumeMounts = [{ name: 'work', mountPath: '/mine', subPath: 'mine' }, WORK];
    const script =
      '[ -e /scratch/again ] || { touch /scratch/again; rm -rf /scratch/mine; exit 1; }; trap "exit 0" TERM; sleep 1000 & wait';
    await s.pod('homeless', {
      volumes: EMPTY,
      containers: [container('main', { command: shell(script), volumeMounts })],
    });
    const pod = await s.until(
      'homeless',
      'runs again',
      (p) => statusOf(p, 'main')?.restartCount === 1 && statusOf(p, 'main')?.ready === true,
    );
    await s.exec(pod, 'touch /mine/x && ls /scratch/mine/x');
    await s.delete('homeless');
    await s.gone('homeless');
  });

  it('all of a config map and a secret in the environment, with a prefix', async () => {
    const s = scene();
    await s.configMap('all-map', { one: '1', 'dotted.key': 'd' });
    await s.secret('all-secret', { two: '2' });
    const envFrom = [
      { configMapRef: { name: 'all-map' } },
      { prefix: 'P_', secretRef: { name: 'all-secret' } },
      { configMapRef: { name: 'not-there', optional: true } },
    ];
    const main = container('main', {
      command: ['env'],
      envFrom,
      env: [{ name: 'one', value: 'own' }],
    });
    await s.pod('all-of-it', { restartPolicy: 'Never', containers: [main] });
    const pod = await s.phase('all-of-it', 'Succeeded');
    const lines = (await s.output(pod)).split('\n');
    for (const line of ['one=own', 'P_two=2', 'dotted.key=d']) assert.ok(lines.includes(line), line);
  });
}
