// Scheduler and controllers on top of the node: Deployments roll, Jobs finish. Skipped where there are no controllers.
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { KubeObject } from '../../src/core/meta.ts';
import { PODS, type Resource } from '../../src/kube/resources.ts';
import { until, untilSeen } from '../harness/until.ts';
import { AT_ONCE, container, isTrue, never, Scene, shell } from './scene.ts';

type Workload = KubeObject & { readonly status?: Readonly<Record<string, number | undefined>> };
const DEPLOYMENTS: Resource<Workload> = { base: '/apis/apps/v1', plural: 'deployments' };
const JOBS: Resource<Workload> = { base: '/apis/batch/v1', plural: 'jobs' };

const template = (labels: Readonly<Record<string, string>>, spec: object): object => ({
  metadata: { labels },
  spec: { automountServiceAccountToken: false, terminationGracePeriodSeconds: 2, ...spec },
});

/** Real clusters may come without scheduler and controller manager. */
const needsControllers = (s: Scene, t: TestContext): boolean => {
  if (!s.node.api.hasControllers) t.skip('no kube-scheduler and kube-controller-manager in KUBEBUILDER_ASSETS');
  return s.node.api.hasControllers;
};

export function workloadsSuite(scene: () => Scene): void {
  describe('workloads', { concurrency: AT_ONCE }, () => {
    it('a Deployment comes up and rolls to its next version', async (t) => {
      const s = scene();
      if (!needsControllers(s, t)) return;
      const labels = { app: 'web' };
      const versioned = (version: string): object =>
        template(labels, { containers: [container('main', { env: [{ name: 'VERSION', value: version }] })] });
      await s.create(DEPLOYMENTS, 'web', {
        spec: { replicas: 2, selector: { matchLabels: labels }, template: versioned('1') },
      });
      const read = (): Promise<Workload> =>
        s.node.client.get(DEPLOYMENTS, { namespace: s.namespace, name: 'web' }, never);
      await untilSeen(
        'both are available',
        async () => (await read()).status?.['availableReplicas'],
        (seen) => seen === 2,
      );
      await s.patch(DEPLOYMENTS, 'web', { spec: { template: versioned('2') } });
      const pods = async (): Promise<readonly string[]> => {
        const { items } = await s.node.client.list(
          PODS,
          { namespace: s.namespace, query: { labelSelector: 'app=web' } },
          never,
        );
        return items.map(
          (p) => `${p.spec.containers[0]?.env?.[0]?.value ?? ''}:${isTrue(p, 'Ready') ? 'ready' : 'not ready'}`,
        );
      };
      await untilSeen(
        'only the new ones are left',
        async () => (await pods()).join(),
        (seen) => seen === '2:ready,2:ready',
      );
      await s.node.client.delete(DEPLOYMENTS, { namespace: s.namespace, name: 'web' }, {}, never);
    });

    it('a Job runs to completion', async (t) => {
      const s = scene();
      if (!needsControllers(s, t)) return;
      const containers = [container('main', { command: shell('echo worked') })];
      await s.create(JOBS, 'work', {
        spec: { completions: 2, parallelism: 2, template: template({}, { restartPolicy: 'Never', containers }) },
      });
      const job = await until('the job is complete', async () => {
        const found = await s.node.client.get(JOBS, { namespace: s.namespace, name: 'work' }, never);
        return found.status?.['succeeded'] === 2 && found;
      });
      assert.equal(job.status?.['failed'] ?? 0, 0);
    });
  });
}
