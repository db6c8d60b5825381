// What workloads are refused for.
import { strict as assert } from 'node:assert';
import { it } from 'node:test';
import type { Json } from './client.ts';
import type { Scene } from './scene.ts';

const template = (restartPolicy: string, more: Json = {}): Json => ({
  metadata: { labels: { a: 'b' } },
  spec: { restartPolicy, containers: [{ name: 'c', image: 'x' }], ...more },
});
const always = { selector: { matchLabels: { a: 'b' } }, template: template('Always') };
const once = { template: template('Never') };
const rolling = (rollingUpdate: Json): Json => ({ strategy: { rollingUpdate } });
const updating = (rollingUpdate: Json): Json => ({ updateStrategy: { type: 'RollingUpdate', rollingUpdate } });

/** `spec.` is left out of the places. */
const ROWS: readonly (readonly [resource: string, spec: Json, problem: string])[] = [
  ['deployments', { replicas: -1 }, 'replicas: Invalid value: -1: must be greater than or equal to 0'],
  ['deployments', { strategy: { type: 'X' } }, 'supported values: "Recreate", "RollingUpdate"'],
  [
    'deployments',
    { strategy: { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } },
    "strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
  ],
  [
    'deployments',
    rolling({ maxSurge: 0, maxUnavailable: 0 }),
    'strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0',
  ],
  ['deployments', rolling({ maxSurge: 'x%' }), 'maxSurge: Invalid value: "x%": a valid percent string must be'],
  ['deployments', rolling({ maxUnavailable: '150%' }), 'Invalid value: "150%": must not be greater than 100%'],
  ['deployments', { selector: {} }, 'selector: Invalid value: {}: empty selector is invalid for deployment'],
  ['deployments', { minReadySeconds: -1 }, 'minReadySeconds: Invalid value: -1: must be greater than or equal to 0'],
  ['deployments', { revisionHistoryLimit: -1 }, 'revisionHistoryLimit: Invalid value: -1'],
  [
    'deployments',
    { minReadySeconds: 700 },
    'progressDeadlineSeconds: Invalid value: 600: must be greater than minReady',
  ],
  [
    'deployments',
    { template: template('Always', { activeDeadlineSeconds: 5 }) },
    'template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported',
  ],
  ['replicasets', { selector: {} }, 'selector: Invalid value: {}: empty selector is invalid for deployment'],
  ['daemonsets', { selector: {} }, 'selector: Invalid value: {}: empty selector is invalid for daemonset'],
  ['daemonsets', { updateStrategy: { type: 'X' } }, 'supported values: "RollingUpdate", "OnDelete"'],
  ['daemonsets', updating({ maxUnavailable: 0 }), 'maxUnavailable: Required value: cannot be 0 when maxSurge is 0'],
  [
    'daemonsets',
    updating({ maxUnavailable: 1, maxSurge: 1 }),
    'maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero',
  ],
  ['statefulsets', { selector: {} }, 'selector: Invalid value: {}: empty selector is invalid for statefulset'],
  ['statefulsets', updating({ partition: -1 }), 'partition: Invalid value: -1: must be greater than or equal to 0'],
  ['jobs', { completions: -1 }, 'completions: Invalid value: -1: must be greater than or equal to 0'],
  ['jobs', { parallelism: -1 }, 'parallelism: Invalid value: -1: must be greater than or equal to 0'],
  ['jobs', { backoffLimit: -1 }, 'backoffLimit: Invalid value: -1: must be greater than or equal to 0'],
  [
    'jobs',
    { activeDeadlineSeconds: -1 },
    'activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0',
  ],
];

export function workloadContract(s: Scene): void {
  for (const [resource, spec, problem] of ROWS)
    it(`refuses ${resource} with ${JSON.stringify(spec)}`, async () => {
      const group = resource === 'jobs' ? 'batch' : 'apps';
      const body = { metadata: { name: 'bad' }, spec: { ...(resource === 'jobs' ? once : always), ...spec } };
      const refused = await s.api.post(`/apis/${group}/v1/namespaces/${s.ns}/${resource}`, body);
      assert.equal(refused.status, 422, refused.text);
      const said = String(refused.body['message']);
      assert.ok(said.includes(problem), said);
      assert.doesNotMatch(said, /is invalid: \[/, 'nothing else is wrong with it');
    });
}
