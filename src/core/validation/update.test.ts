import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { applyPodDefaults } from '../pod-defaults.ts';
import type { Pod, PodSpec } from '../pod.ts';
import { formatFieldError, type FieldError } from './field-error.ts';
import { validateResize } from './resize.ts';
import { validateEphemeralContainersUpdate, validatePodUpdate } from './update.ts';

const base = applyPodDefaults({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'ns', uid: 'u' },
  spec: {
    containers: [
      { name: 'c', image: 'i:1', resources: { requests: { cpu: '1' }, limits: { cpu: '2', 'a.com/g': '1' } } },
    ],
    initContainers: [
      { name: 'once', image: 'i:1', resources: { requests: { cpu: '1' } } },
      { name: 'side', image: 'i:1', restartPolicy: 'Always', resources: { requests: { cpu: '1' } } },
    ],
    tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }],
    activeDeadlineSeconds: 100,
  },
});
const changed = (spec: Partial<PodSpec>, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  ...base,
  metadata: { ...base.metadata, ...metadata },
  spec: { ...base.spec, ...spec },
});
const first = base.spec.containers[0];
assert.ok(first);

type Check = (now: Pod, before: Pod) => readonly FieldError[];
type Row = readonly [string, Pod, readonly RegExp[], Pod?];
const table = (check: Check, rows: readonly Row[]): void => {
  for (const [name, now, expected, before = base] of rows)
    it(name, () => {
      const found = check(now, before).map(formatFieldError);
      assert.equal(found.length, expected.length, found.join('\n'));
      expected.forEach((pattern, i) => assert.match(found[i] ?? '', pattern));
    });
};

describe('updates', () => {
  const negative = changed({ terminationGracePeriodSeconds: -1 });
  table(validatePodUpdate, [
    ['nothing', base, []],
    ['an image', changed({ containers: [{ ...first, image: 'i:2' }] }), []],
    ['labels', changed({}, { labels: { a: 'b' } }), []],
    ['a shorter deadline', changed({ activeDeadlineSeconds: 50 }), []],
    ['a longer deadline', changed({ activeDeadlineSeconds: 101 }), [/must be less than or equal to previous value/]],
    ['one more toleration', changed({ tolerations: [...(base.spec.tolerations ?? []), { operator: 'Exists' }] }), []],
    [
      'other seconds of a toleration',
      changed({ tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 9 }] }),
      [],
    ],
    ['one toleration less', changed({ tolerations: [] }), [/existing toleration can not be modified/]],
    [
      'a command',
      changed({ containers: [{ ...first, command: ['x'] }] }),
      [/^spec: Forbidden: pod updates may not change fields other than/],
    ],
    [
      'one more container',
      changed({ containers: [...base.spec.containers, { ...first, name: 'd' }] }),
      [/pod updates may not add or remove containers/],
    ],
    ['an empty image', changed({ containers: [{ ...first, image: '' }] }), [/image: Required value/]],
    ['the grace period', changed({ terminationGracePeriodSeconds: 9 }), [/pod updates may not change fields/]],
    [
      'a negative grace period set right',
      { ...negative, spec: { ...negative.spec, terminationGracePeriodSeconds: 1 } },
      [],
      negative,
    ],
    ['the name', changed({}, { name: 'q' }), [/metadata\.name: Invalid value: "q": field is immutable/]],
    ['a gate', changed({ schedulingGates: [{ name: 'g' }] }), [/only deletion is allowed/]],
    [
      'a mirror',
      changed({ nodeName: 'n' }, { annotations: { 'kubernetes.io/config.mirror': 'x' } }),
      [/may not add mirror pod annotation/, /pod updates may not change/],
    ],
  ]);
});

describe('ephemeral containers', () => {
  const debug = { ...first, name: 'dbg', resources: {} };
  const one = changed({ ephemeralContainers: [debug] });
  table(validateEphemeralContainersUpdate, [
    ['a new one', one, []],
    ['the same', one, [], one],
    ['one less', base, [/"dbg" may not be removed/], one],
    [
      'another image',
      changed({ ephemeralContainers: [{ ...debug, image: 'i:2' }] }),
      [/"dbg" may not be changed/],
      one,
    ],
    [
      'a name that is taken',
      changed({ ephemeralContainers: [{ ...debug, name: 'c' }] }),
      [/name: Duplicate value: "c"/],
    ],
    ['something else', changed({ hostNetwork: true }), [/only ephemeral containers may be changed here/]],
    [
      'of a static pod',
      one,
      [/static pods do not support/],
      changed({}, { annotations: { 'kubernetes.io/config.mirror': 'x' } }),
    ],
  ]);
});

describe('resizes', () => {
  const resources = (requests: Record<string, string>, limits: Record<string, string>): Pod =>
    changed({
      containers: [
        { ...first, resources: { requests: { 'a.com/g': '1', ...requests }, limits: { 'a.com/g': '1', ...limits } } },
      ],
    });
  const init = (index: number, cpu: string): Pod =>
    changed({
      initContainers: (base.spec.initContainers ?? []).map((c, i) =>
        i === index ? { ...c, resources: { requests: { cpu } } } : c,
      ),
    });
  const whole = (requests: Record<string, string>, limits: Record<string, string>): Pod =>
    changed({ resources: { requests, limits } });
  const two = whole({ cpu: '3' }, { cpu: '4', memory: '1Gi' });
  const pages = { 'hugepages-2Mi': '4Mi' };
  const inits = base.spec.initContainers ?? [];
  const restart = { resourceName: 'cpu', restartPolicy: 'RestartContainer' } as const;
  const same = { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } };
  const claiming = (cpu: string): Pod =>
    changed({
      resourceClaims: [{ name: 'gpu', resourceClaimName: 'mine' }],
      containers: [{ ...first, resources: { requests: { cpu }, limits: { cpu: '2' }, claims: [{ name: 'gpu' }] } }],
    });
  const restarting = (cpu: string): Pod =>
    changed({
      initContainers: inits.map((c) =>
        c.name === 'once' ? { ...c, resizePolicy: [restart], resources: { requests: { cpu } } } : c,
      ),
    });
  table(validateResize, [
    ['nothing for the pod as a whole', two, [], two],
    ['more for the pod as a whole', whole({ cpu: '4' }, { cpu: '5', memory: '2Gi' }), [], two],
    ['something for the pod as a whole', whole({ cpu: '3' }, { cpu: '4' }), []],
    ['no more for the pod as a whole', base, [/spec.resources: Forbidden: pod-level resources cannot be removed/], two],
    [
      'a limit of the pod less',
      whole({ cpu: '3' }, { cpu: '4' }),
      [/spec.resources.limits: Forbidden: pod-level resource limits cannot be removed/],
      two,
    ],
    [
      'huge pages of the pod',
      whole({ cpu: '3', ...pages }, { cpu: '4', memory: '1Gi', ...pages }),
      [/spec: Forbidden: only cpu and memory resources are mutable at pod-level/],
      two,
    ],
    [
      'less for the pod than its containers ask for',
      whole({ cpu: '1' }, { cpu: '4', memory: '1Gi' }),
      [/spec.resources.requests\[cpu\]: Invalid value: "1": must be greater than or equal to aggregate/],
      two,
    ],
    ['nothing', base, []],
    ['more cpu', resources({ cpu: '1500m' }, { cpu: '3' }), []],
    ['memory too', resources({ cpu: '1', memory: '1Mi' }, { cpu: '2' }), []],
    ['more than the limit', resources({ cpu: '3' }, { cpu: '2' }), [/must be less than or equal to cpu limit of 2/]],
    ['a limit less', resources({ cpu: '1' }, {}), [/resource limits cannot be removed/]],
    [
      'a device',
      changed({
        containers: [
          {
            ...first,
            resources: {
              ...first.resources,
              limits: { cpu: '2', 'a.com/g': '2' },
              requests: { cpu: '1', 'a.com/g': '2' },
            },
          },
        ],
      }),
      [/only cpu and memory resources are mutable/],
    ],
    ['an image', changed({ containers: [{ ...first, image: 'i:2' }] }), [/only cpu and memory resources are mutable/]],
    ['a resize policy', changed({ containers: [{ ...first, resizePolicy: [restart] }] }), [/only cpu and memory/]],
    ['another number of devices', resources({ cpu: '1', 'a.com/g': '2' }, { cpu: '2', 'a.com/g': '2' }), [/only cpu/]],
    [
      'an unknown resource',
      resources({ cpu: '1', disk: '1' }, { cpu: '2', disk: '1' }),
      [
        /Invalid value: "disk"/,
        /Invalid value: "disk"/,
        /must be a standard resource/,
        /must be a standard/,
        /only cpu/,
      ],
    ],
    ['a request less', resources({}, { cpu: '2' }), [/requests: Forbidden: resource requests cannot be removed/]],
    ['something for a pod with claims in its containers', claiming('2'), [/only cpu and memory/], claiming('1')],
    [
      'what a claim gives already',
      resources({ cpu: '1500m' }, { cpu: '2' }),
      [/spec: Forbidden: pods with node allocatable resource claims cannot be resized/],
      { ...base, status: { nodeAllocatableResourceClaimStatuses: [{ resourceClaimName: 'x' }] } },
    ],
    [
      'on a node that does not know how',
      resources({ cpu: '1500m' }, { cpu: '2' }),
      [/spec: Forbidden: Pod running on node without support for resize/],
      { ...base, status: { containerStatuses: [{ name: 'c', state: { running: {} } }] } } as unknown as Pod,
    ],
    [
      'burstable to guaranteed',
      changed({
        initContainers: inits.map((c) => ({ ...c, resources: same })),
        containers: [{ ...first, resources: same }],
      }),
      [/spec: Invalid value: "": Pod QOS Class may not change as a result of resizing/],
      changed({
        initContainers: inits.map((c) => ({ ...c, resources: same })),
        containers: [{ ...first, resources: { requests: { cpu: '500m' }, limits: same.limits } }],
      }),
    ],
    ['another order', changed({ initContainers: inits.toReversed() }), [/renamed/, /renamed/]],
    [
      'a container more',
      changed({ containers: [first, { ...first, name: 'd' }] }),
      [/spec.containers: Forbidden: containers may not be added or removed on resize/],
    ],
    [
      'an init container that would be restarted',
      restarting('2'),
      [
        /must not be set to 'RestartContainer' for non-sidecar/,
        /\[0\]: Forbidden: non-sidecar init containers with a resize policy of RestartContainer cannot be resized/,
      ],
      restarting('1'),
    ],
    ['a sidecar', init(1, '2'), []],
    ['an init container', init(0, '2'), []],
    [
      "an init container's image",
      changed({ initContainers: (base.spec.initContainers ?? []).map((c) => ({ ...c, image: 'i:2' })) }),
      [/\[0\]: Forbidden: only cpu and memory resources for init or sidecar/, /\[1\]: Forbidden: only cpu and memory/],
    ],
    [
      'another class',
      changed({ containers: [{ ...first, resources: {} }], initContainers: [] }),
      [/Pod QOS Class may not change/, /may not be added or removed/],
    ],
    [
      'a static pod',
      base,
      [/static pods cannot be resized/],
      changed({}, { annotations: { 'kubernetes.io/config.mirror': 'x' } }),
    ],
  ]);
});
