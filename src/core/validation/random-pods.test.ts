import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { applyPodDefaults } from '../pod-defaults.ts';
import type { Pod } from '../pod.ts';
import { formatFieldError } from './field-error.ts';
import { readPod } from './pod-shape.ts';
import { validatePod } from './pod.ts';
import { validateResize } from './resize.ts';
import { validateEphemeralContainersUpdate, validatePodUpdate } from './update.ts';
import { randomRuns } from '../../../test/harness/random-runs.ts';

const RUNS = randomRuns(5000);

const word = fc.constantFrom(
  '',
  'a',
  'web',
  'A_b',
  '..',
  '../x',
  '/etc',
  'a b',
  '1',
  '-',
  'x'.repeat(300),
  '\n',
  'é',
  '__proto__',
  'Always',
  'Never',
  'TCP',
  'Localhost',
  'Exists',
  'None',
  '2Mi',
  '-1',
  '1e400',
  '100m',
);
const number = fc.constantFrom(0, 1, -1, 80, 65536, 2 ** 31, 2 ** 53, 1.5, Number.NaN, Infinity);
const scalar = fc.oneof(word, number, fc.boolean(), fc.constant(null), fc.constant(undefined));

const KEYS = (
  'name image command args ports containerPort hostPort protocol env value valueFrom fieldRef fieldPath resourceFieldRef resource divisor ' +
  'envFrom configMapRef secretRef resources limits requests claims cpu memory hugepages-2Mi volumeMounts mountPath subPath ' +
  'mountPropagation livenessProbe readinessProbe startupProbe exec httpGet path port scheme httpHeaders tcpSocket grpc sleep seconds ' +
  'lifecycle postStart preStop stopSignal securityContext capabilities add drop privileged runAsUser procMount seccompProfile type ' +
  'localhostProfile sysctls volumes emptyDir sizeLimit hostPath configMap items key mode secret secretName projected sources downwardAPI ' +
  'serviceAccountToken expirationSeconds csi driver nfs server initContainers containers ephemeralContainers restartPolicy ' +
  'restartPolicyRules action exitCodes operator values resizePolicy resourceName dnsConfig nameservers searches options hostAliases ip ' +
  'hostnames affinity nodeAffinity podAffinity requiredDuringSchedulingIgnoredDuringExecution nodeSelectorTerms matchExpressions ' +
  'topologySpreadConstraints maxSkew topologyKey tolerations effect overhead os hostUsers hostNetwork schedulingGates resourceClaims ' +
  'hostnameOverride terminationGracePeriodSeconds activeDeadlineSeconds image reference labels annotations'
).split(' ');

/** Trees of plausible keys with implausible values. */
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(tie('tree'), { maxLength: 3 }),
    fc.dictionary(fc.oneof(fc.constantFrom(...KEYS), word), tie('tree'), { maxKeys: 6 }),
  ),
}));
const fields = fc.dictionary(fc.constantFrom(...KEYS), tree, { maxKeys: 8 });
const container = fields.map((extra) => ({ name: 'c', image: 'i', ...extra }));
const pod = fc.record({
  metadata: fc.oneof(fc.constant({ name: 'p', namespace: 'ns' }), fields, tree),
  spec: fc.oneof(
    fc.record({
      containers: fc.array(container, { maxLength: 3 }),
      initContainers: fc.array(container, { maxLength: 2 }),
    }),
    fields.map((extra) => ({ containers: [{ name: 'c', image: 'i' }], ...extra })),
    tree,
  ),
});

describe('random pods', () => {
  it(`never raise an exception in ${RUNS} tries`, () => {
    let accepted = 0;
    fc.assert(
      fc.property(pod, pod, (raw, other) => {
        const direct = validatePod(raw as unknown as Pod);
        assert.ok(Array.isArray(direct));
        direct.map(formatFieldError);
        const read = readPod(raw);
        if (read.object === undefined) {
          assert.ok(read.errors.length > 0);
          return;
        }
        const done = applyPodDefaults(read.object);
        const errors = validatePod(done);
        for (const error of errors) assert.equal(typeof formatFieldError(error), 'string');
        if (errors.length === 0) accepted++;
        // Defaults are complete after one pass, and a pod is always a legal update of itself.
        assert.deepEqual(applyPodDefaults(done), done);
        if (errors.length === 0) assert.deepEqual(validatePodUpdate(done, done), []);
        const second = readPod(other).object;
        if (second === undefined) return;
        for (const check of [validatePodUpdate, validateResize, validateEphemeralContainersUpdate])
          assert.ok(Array.isArray(check(applyPodDefaults(second), done)));
      }),
      { numRuns: RUNS, seed: 20_261_115 },
    );
    assert.ok(accepted > 0, 'no random pod was good: the generator proves nothing');
  });
});
