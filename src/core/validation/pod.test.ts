import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../pod.ts';
import { validatePod } from './pod.ts';
import { problems, table, withContainer, type Json } from './testing.ts';

describe('a pod that is good', () => {
  table([
    ['the smallest', () => problems({}), []],
    [
      'one with much in it',
      () =>
        problems({
          volumes: [
            { name: 'e', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
            { name: 'h', hostPath: { path: '/tmp', type: 'Directory' } },
            { name: 'd', downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: "metadata.labels['a']" } }] } },
            { name: 'i', image: { reference: 'x:1' } },
            { name: 'none' },
          ],
          initContainers: [
            { name: 's', image: 'i', restartPolicy: 'Always', readinessProbe: { tcpSocket: { port: 'http' } } },
          ],
          containers: [
            {
              name: 'c',
              image: 'i',
              env: [
                { name: 'any name, nearly', value: '' },
                { name: 'F', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
              ],
              resources: { limits: { cpu: 2, memory: '1Gi', 'example.com/gpu': '1', 'hugepages-2Mi': '4Mi' } },
              volumeMounts: [{ name: 'e', mountPath: '/e', subPath: 'a/b' }],
              lifecycle: { preStop: { sleep: { seconds: 3 } } },
              livenessProbe: { grpc: { port: 80 } },
            },
          ],
          securityContext: { sysctls: [{ name: 'net.ipv4.ip_local_port_range', value: '1024 65535' }] },
          tolerations: [{ operator: 'Exists' }],
          hostAliases: [{ ip: '010.0.0.1', hostnames: ['a.b'] }],
        }),
      [],
    ],
  ]);
});

describe('metadata', () => {
  table([
    [
      'name',
      () => problems({}, { name: 'Bad_' }),
      [/^metadata\.name: Invalid value: "Bad_": a lowercase RFC 1123 subdomain/],
    ],
    ['no name', () => problems({}, { name: '' }), ['metadata.name: Required value: name or generateName is required']],
    ['namespace', () => problems({}, { namespace: 'a.b' }), [/^metadata\.namespace: Invalid value: "a\.b"/]],
    ['label key', () => problems({}, { labels: { '-x': 'y' } }), [/^metadata\.labels: Invalid value: "-x": name part/]],
    [
      'label value',
      () => problems({}, { labels: { x: 'a b' } }),
      [/^metadata\.labels: Invalid value: "a b": a valid label/],
    ],
    [
      'label type',
      () => problems({}, { labels: { x: 1 } }),
      ['metadata.labels[x]: Invalid value: 1: must be a string, not a number'],
    ],
    [
      'annotations',
      () => problems({}, { annotations: { 'a/b/c': '' } }),
      [/^metadata\.annotations: Invalid value: "a\/b\/c"/],
    ],
    [
      'too many annotations',
      () => problems({}, { annotations: { a: 'x'.repeat(300_000) } }),
      [/^metadata\.annotations: Too long: may not be more than 262144 bytes/],
    ],
    [
      'AppArmor of nobody',
      () => problems({}, { annotations: { 'container.apparmor.security.beta.kubernetes.io/x': 'unconfined' } }),
      [/container not found$/],
    ],
  ]);
});

describe('containers', () => {
  table([
    ['none', () => problems({ containers: [] }), ['spec.containers: Required value']],
    [
      'no list',
      () => problems({ containers: {} }),
      ['spec.containers: Invalid value: null: must be a list, not an object'],
    ],
    [
      'no name, no image',
      () => problems({ containers: [{}] }),
      ['spec.containers[0].name: Required value', 'spec.containers[0].image: Required value'],
    ],
    [
      'space around the image',
      () => withContainer({ image: 'i ' }),
      ['spec.containers[0].image: Invalid value: "i ": must not have leading or trailing whitespace'],
    ],
    [
      'two of a name',
      () =>
        problems({
          containers: [
            { name: 'c', image: 'i' },
            { name: 'c', image: 'i' },
          ],
        }),
      ['spec.containers[1].name: Duplicate value: "c"'],
    ],
    [
      'init of the same name',
      () => problems({ initContainers: [{ name: 'c', image: 'i' }] }),
      ['spec.initContainers[0].name: Duplicate value: "c"'],
    ],
    [
      'pull policy',
      () => withContainer({ imagePullPolicy: 'Maybe' }),
      [
        'spec.containers[0].imagePullPolicy: Unsupported value: "Maybe": supported values: "Always", "IfNotPresent", "Never"',
      ],
    ],
    [
      'ports',
      () => withContainer({ ports: [{ containerPort: 0 }, { containerPort: 70000, protocol: 'X', name: '-' }] }),
      [
        'spec.containers[0].ports[0].containerPort: Required value',
        /ports\[1\]\.name: Invalid value: "-"/,
        /ports\[1\]\.name/,
        /ports\[1\]\.containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive/,
        /ports\[1\]\.protocol: Unsupported value: "X"/,
      ],
    ],
    [
      'host ports twice',
      () =>
        problems({
          containers: [
            { name: 'a', image: 'i', ports: [{ containerPort: 1, hostPort: 80 }] },
            { name: 'b', image: 'i', ports: [{ containerPort: 2, hostPort: 80 }] },
          ],
        }),
      ['spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"'],
    ],
    [
      'host network',
      () => withContainer({ ports: [{ containerPort: 80, hostPort: 81 }] }, { hostNetwork: true }),
      [
        'spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true',
      ],
    ],
    [
      'probe of an init container',
      () => problems({ initContainers: [{ name: 'x', image: 'i', livenessProbe: { exec: { command: ['a'] } } }] }),
      [
        'spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always',
      ],
    ],
    [
      'probes',
      () =>
        withContainer({
          livenessProbe: { successThreshold: 2 },
          readinessProbe: { exec: {}, terminationGracePeriodSeconds: 3, periodSeconds: -1 },
        }),
      [
        'spec.containers[0].livenessProbe: Required value: must specify a handler type',
        'spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1',
        'spec.containers[0].readinessProbe.exec.command: Required value',
        'spec.containers[0].readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0',
        'spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 3: must not be set for readinessProbes',
      ],
    ],
    [
      'two handlers',
      () => withContainer({ livenessProbe: { exec: { command: ['a'] }, grpc: { port: 1 } } }),
      ['spec.containers[0].livenessProbe.grpc: Forbidden: may not specify more than 1 handler type'],
    ],
    [
      'sleep past the end',
      () => withContainer({ lifecycle: { preStop: { sleep: { seconds: 31 } } } }),
      [
        'spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)',
      ],
    ],
    [
      'stop signal',
      () => withContainer({ lifecycle: { stopSignal: 'SIGFOO' } }, { os: { name: 'linux' } }),
      [/stopSignal: Unsupported value: "SIGFOO"/],
    ],
    [
      'restart rules',
      () => withContainer({ restartPolicyRules: [{ action: 'Restart' }] }),
      [
        'spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used',
        'spec.containers[0].restartPolicyRules[0].exitCodes: Required value: must be specified',
      ],
    ],
    [
      'resize policy',
      () => withContainer({ resizePolicy: [{ resourceName: 'disk', restartPolicy: 'NotRequired' }] }),
      [/resizePolicy\[0\]\.resourceName: Unsupported value: "disk"/],
    ],
    [
      'ephemeral on create',
      () => problems({ ephemeralContainers: [{ name: 'e', image: 'i' }] }),
      ['spec.ephemeralContainers: Forbidden: cannot be set on create'],
    ],
    [
      'ephemeral with too much',
      () =>
        problems({
          ephemeralContainers: [
            {
              name: 'c',
              image: 'i',
              ports: [{ containerPort: 1 }],
              targetContainerName: 'x',
              resources: { limits: { cpu: 1 } },
            },
          ],
        }),
      [
        /name: Duplicate value: "c"/,
        /targetContainerName: Not found: "x"/,
        /ports: Forbidden: cannot be set for an Ephemeral Container/,
        /resources: Forbidden/,
        /cannot be set on create/,
      ],
    ],
  ]);
});

describe('resources of the pod as a whole', () => {
  const whole = (resources: Json, container: Json = {}): readonly string[] =>
    problems({ resources, containers: [{ name: 'c', image: 'i', resources: container }] });
  const pages = { 'hugepages-2Mi': '4Mi' };
  table([
    ['cpu, memory and huge pages', () => whole({ limits: { cpu: '1', memory: '1Gi', ...pages } }), []],
    [
      'anything else',
      () => whole({ requests: { 'ephemeral-storage': '1Gi' } }),
      [
        'spec.resources.requests[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: "cpu", "hugepages-", "memory"',
      ],
    ],
    [
      'claims',
      () => whole({ limits: { cpu: '1' }, claims: [{ name: 'x' }] }),
      [/spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level/, /Not found: "x"/],
    ],
    [
      'more requested than allowed',
      () => whole({ requests: { cpu: '2' }, limits: { cpu: '1' } }),
      ['spec.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
    ],
    [
      'less than the containers ask for',
      () => whole({ requests: { cpu: '1' } }, { requests: { cpu: '1500m' } }),
      [
        'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 1500m',
      ],
    ],
    [
      'less than a container may use',
      () => whole({ limits: { memory: '1Gi' } }, { requests: { memory: '1Mi' }, limits: { memory: '2Gi' } }),
      [
        'spec.resources.containers[0][memory].limits: Invalid value: "2Gi": must be less than or equal to pod limits of 1Gi',
      ],
    ],
    [
      'fewer huge pages than the containers have',
      () => whole({ limits: { cpu: '1', ...pages } }, { limits: { cpu: '1', 'hugepages-2Mi': '8Mi' } }),
      [/requests\[hugepages-2Mi\]/, /limits\[hugepages-2Mi\]/, /containers\[0\]\[hugepages-2Mi\].limits/],
    ],
  ]);
});

describe('environment', () => {
  const env = (variable: Json): readonly string[] => withContainer({ env: [variable] });
  const from = (valueFrom: Json): readonly string[] => env({ name: 'A', valueFrom });
  table([
    ['no name', () => env({ value: 'x' }), ['spec.containers[0].env[0].name: Required value']],
    ['equals sign', () => env({ name: 'A=B' }), [/env\[0\]\.name: Invalid value: "A=B"/]],
    [
      'number as value',
      () => env({ name: 'A', value: 5 }),
      ['spec.containers[0].env[0].value: Invalid value: 5: must be a string, not a number'],
    ],
    ['no source', () => from({}), [/env\[0\]\.valueFrom: Invalid value: "": must specify one of/]],
    [
      'value and source',
      () => env({ name: 'A', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }),
      [/may not be specified when `value` is not empty/],
    ],
    [
      'unknown field',
      () => from({ fieldRef: { fieldPath: 'spec.nope' } }),
      [/fieldPath: Invalid value: "spec\.nope": error converting fieldPath: field label not supported: spec\.nope/],
    ],
    [
      'field not for env',
      () => from({ fieldRef: { fieldPath: 'metadata.labels' } }),
      [/fieldPath: Unsupported value: "metadata\.labels"/],
    ],
    ['bad subscript', () => from({ fieldRef: { fieldPath: "metadata.labels['-']" } }), [/name part/]],
    [
      'resource',
      () => from({ resourceFieldRef: { resource: 'limits.disk' } }),
      [/resource: Unsupported value: "limits\.disk"/],
    ],
    [
      'divisor',
      () => from({ resourceFieldRef: { resource: 'limits.cpu', divisor: '1Mi' } }),
      [/only divisor's values 1m and 1/],
    ],
    [
      'key',
      () => from({ secretKeyRef: { name: 's', key: '../x' } }),
      [/secretKeyRef\.key: Invalid value/, /must not start with '\.\.'/],
    ],
    [
      'file key without its volume',
      () => from({ fileKeyRef: { volumeName: 'v', path: 'a', key: 'K' } }),
      [/fileKeyRef\.volumeName: Not found: "v"/],
    ],
    [
      'envFrom nothing',
      () => withContainer({ envFrom: [{}] }),
      [/envFrom\[0\]: Invalid value: "": must specify one of/],
    ],
  ]);
});

describe('anything at all', () => {
  for (const raw of [
    null,
    undefined,
    1,
    'x',
    [],
    {},
    { metadata: null },
    { spec: 'x' },
    { spec: { containers: [null] } },
  ])
    it(`is answered: ${JSON.stringify(raw)}`, () => {
      assert.ok(Array.isArray(validatePod(raw as unknown as Pod)));
      assert.ok(validatePod(raw as unknown as Pod).length > 0);
    });
});
