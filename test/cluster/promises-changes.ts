// Promises about pods that cannot be what they want to be, or that change while they are there.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { PODS } from '../../src/kube/resources.ts';
import { container, EMPTY, fieldEnv, isTrue, Scene, shell, statusOf, WORK } from './scene.ts';

/** What is refused, and what comes right or goes wrong while the pod is there. */
export function changesSuite(scene: () => Scene): void {
  refusals(scene);
  corrections(scene);
  endings(scene);
}

function refusals(scene: () => Scene): void {
  for (const [name, subPathExpr] of [
    ['path-that-leads-out', '../out'],
    ['path-from-the-root', '/$(POD)'],
  ] as const)
    it(name, async () => {
      const s = scene();
      const env = [fieldEnv('POD', 'metadata.name')];
      const refused = s.pod(name, {
        volumes: EMPTY,
        containers: [container('main', { env, volumeMounts: [{ ...WORK, subPathExpr }] })],
      });
      // The API server refuses what it can see; the rest is for the kubelet.
      const created = await refused.catch(() => undefined);
      if (created === undefined) return;
      const pod = await s.until(name, 'is refused', (p) => statusOf(p, 'main')?.state.waiting?.message !== undefined);
      assert.equal(statusOf(pod, 'main')?.state.waiting?.reason, 'CreateContainerConfigError');
      assert.equal(isTrue(pod, 'Ready'), false);
      await s.delete(name, { gracePeriodSeconds: 0 });
    });

  it('a setting of the kernel that others could feel', async () => {
    const s = scene();
    const created = await s.pod('unsafe', {
      securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '10000' }] },
    });
    const pod = await s.phase('unsafe', 'Failed');
    assert.equal(pod.status?.reason, 'SysctlForbidden');
    await s.event(created, 'SysctlForbidden');
  });

  it('root where the pod wants nobody to be root', async () => {
    const s = scene();
    await s.pod('root', { containers: [container('main', { securityContext: { runAsNonRoot: true } })] });
    const pod = await s.until(
      'root',
      'is refused',
      (p) => statusOf(p, 'main')?.state.waiting?.reason === 'CreateContainerConfigError',
    );
    assert.match(
      statusOf(pod, 'main')?.state.waiting?.message ?? '',
      /container has runAsNonRoot and image will run as root/,
    );
    assert.equal(pod.status?.phase, 'Pending');
    await s.delete('root', { gracePeriodSeconds: 0 });
  });
}

function corrections(scene: () => Scene): void {
  it('a path that cannot be made works once the pod is changed', async () => {
    const s = scene();
    const env = [fieldEnv('POD', 'metadata.name'), fieldEnv('WHERE', "metadata.annotations['where']")];
    await s.pod('corrected', {
      volumes: EMPTY,
      containers: [container('main', { env, volumeMounts: [{ ...WORK, subPathExpr: '$(WHERE)/$(POD)' }] })],
    });
    await s.until(
      'corrected',
      'waits',
      (p) => statusOf(p, 'main')?.state.waiting?.reason === 'CreateContainerConfigError',
    );
    await s.patch(PODS, 'corrected', { metadata: { annotations: { where: 'here' } } });
    await s.ready('corrected');
    await s.delete('corrected', { gracePeriodSeconds: 0 });
  });

  it('a deadline that is set while the pod runs', async () => {
    const s = scene();
    await s.pod('hurried', {});
    await s.ready('hurried');
    await s.patch(PODS, 'hurried', { spec: { activeDeadlineSeconds: 1 } });
    assert.equal((await s.phase('hurried', 'Failed')).status?.reason, 'DeadlineExceeded');
  });

  it('an image that is corrected starts at once, whatever its predecessor did', async () => {
    const s = scene();
    await s.pod('better', {
      containers: [container('main', { image: 'localhost/not-there:1', imagePullPolicy: 'Never' })],
    });
    await s.until('better', 'has no image', (p) => statusOf(p, 'main')?.state.waiting?.reason === 'ErrImageNeverPull');
    await s.patch(PODS, 'better', { spec: { containers: [{ name: 'main', image: container('main').image }] } });
    await s.ready('better', 15_000);
    await s.delete('better', { gracePeriodSeconds: 0 });
  });

  it('an init container that fails is run again until it works, and nothing before it ends', async () => {
    const s = scene();
    const script = '[ -e /scratch/tried ] && exit 0; touch /scratch/tried; exit 1';
    await s.pod('second-try', {
      volumes: EMPTY,
      initContainers: [container('first', { command: shell(script), volumeMounts: [WORK] })],
    });
    const pod = await s.ready('second-try');
    assert.equal(statusOf(pod, 'first')?.restartCount, 1);
    assert.equal(statusOf(pod, 'first')?.state.terminated?.reason, 'Completed');
  });
}

function endings(scene: () => Scene): void {
  it('a pod that is ending is no longer ready when its probe says so', async () => {
    const s = scene();
    const readinessProbe = { exec: { command: ['test', '-e', '/ready'] }, periodSeconds: 1, failureThreshold: 1 };
    const preStop = { exec: { command: shell('rm /ready; sleep 4') } };
    await s.pod('ending', {
      terminationGracePeriodSeconds: 20,
      containers: [
        container('main', {
          command: shell('touch /ready; trap "exit 0" TERM; sleep 1000 & wait'),
          readinessProbe,
          lifecycle: { preStop },
        }),
      ],
    });
    await s.ready('ending');
    await s.delete('ending');
    const pod = await s.until('ending', 'is not ready', (p) => !isTrue(p, 'Ready') && !isTrue(p, 'ContainersReady'));
    assert.notEqual(pod.metadata.deletionTimestamp, undefined);
    assert.notEqual(statusOf(pod, 'main')?.state.running, undefined, 'it still runs');
    await s.gone('ending');
  });
}
