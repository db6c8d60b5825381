// One row per rule about sandboxes, init containers and sidecars.
import { sandboxId } from '../core/ids.ts';
import type { Container, Pod } from '../core/pod.ts';
import { box, podOf, PROBE, READY, sidecar, table } from '../../test/golden/plan-table.ts';

const inits = podOf({ initContainers: [box('i1'), box('i2')] });
const never = podOf({ restartPolicy: 'Never' });
const onFailure = podOf({ restartPolicy: 'OnFailure', containers: [box('a'), box('b')] });
const dead = [{ ...READY, ready: false }];

table('the sandbox', [
  { rule: 'none yet: attempt 0', sandboxes: [], steps: ['sandbox 0', 'start a'] },
  {
    rule: 'not ready: next attempt, old one killed',
    sandboxes: dead,
    steps: ['kill pod', 'sandbox 5 for s', 'start a'],
  },
  {
    rule: 'two ready ones: both go',
    sandboxes: [READY, { ...READY, id: sandboxId('t'), attempt: 3 }],
    steps: ['kill pod', 'sandbox 5 for s', 'start a'],
  },
  {
    rule: 'network mode differs: nothing said about the old one',
    sandboxes: [{ ...READY, hostNetwork: true }],
    steps: ['kill pod', 'sandbox 5', 'start a'],
  },
  { rule: 'no address', sandboxes: [{ ...READY, ips: [] }], steps: ['kill pod', 'sandbox 5 for s', 'start a'] },
  {
    rule: 'no address needed on the host network',
    pod: podOf({ hostNetwork: true }),
    sandboxes: [{ ...READY, hostNetwork: true, ips: [] }],
    seen: ['a running'],
    steps: [],
  },
  {
    rule: 'never restarted: a pod that ran is not made again',
    pod: never,
    sandboxes: dead,
    seen: ['a exited 1'],
    steps: ['kill pod'],
  },
  {
    rule: 'never restarted, but nothing ran yet',
    pod: never,
    sandboxes: dead,
    steps: ['kill pod', 'sandbox 5 for s', 'start a'],
  },
  { rule: 'never restarted, first sandbox ever', pod: never, sandboxes: [], steps: ['sandbox 0', 'start a'] },
  {
    rule: 'succeeded ones stay done under OnFailure',
    pod: onFailure,
    sandboxes: dead,
    seen: ['a exited 0', 'b exited 1'],
    steps: ['kill pod', 'sandbox 5 for s', 'start b'],
  },
  {
    rule: 'all succeeded under OnFailure: no sandbox',
    pod: onFailure,
    sandboxes: dead,
    seen: ['a exited 0', 'b exited 0'],
    steps: ['kill pod'],
  },
  {
    rule: "a container's own OnFailure counts too",
    pod: podOf({ containers: [box('a', { restartPolicy: 'OnFailure' }), box('b')] }),
    sandboxes: dead,
    seen: ['a exited 0', 'b exited 0'],
    steps: ['kill pod', 'sandbox 5 for s', 'start b'],
  },
  {
    rule: 'with init containers only the first starts',
    pod: inits,
    sandboxes: [],
    steps: ['sandbox 0', 'start i1 blocking'],
  },
  {
    rule: 'old init containers are removed, logs and all',
    pod: inits,
    sandboxes: dead,
    seen: ['a exited 1', 'i2 exited 0', 'i1 exited 0', 'i1#old exited 1'],
    steps: ['kill pod', 'remove i1', 'remove old', 'remove i2', 'sandbox 5 for s', 'start i1 blocking'],
  },
  {
    rule: 'debug containers wait for the next sync',
    pod: podOf({ ephemeralContainers: [box('d')] }),
    sandboxes: [],
    steps: ['sandbox 0', 'start a'],
  },
]);

table('init containers', [
  { rule: 'none seen: the first', pod: inits, steps: ['start i1 blocking'] },
  { rule: 'running: wait', pod: inits, seen: ['i1 running'], steps: [] },
  {
    rule: 'created but not started: again',
    pod: inits,
    seen: ['i1 created'],
    steps: ['start i1 blocking instead of i1'],
  },
  { rule: 'done: the next', pod: inits, seen: ['i1 exited 0'], steps: ['start i2 blocking'] },
  {
    rule: 'done, and the first already forgotten: the next of the last seen',
    pod: inits,
    seen: ['i2 exited 0'],
    steps: ['start a'],
  },
  { rule: 'last done: main ones', pod: inits, seen: ['i2 exited 0', 'i1 exited 0'], steps: ['start a'] },
  { rule: 'failed: again', pod: inits, seen: ['i1 exited 1'], steps: ['start i1 blocking'] },
  {
    rule: 'killed for memory is failed whatever its code',
    pod: inits,
    seen: ['i1 exited 0 OOMKilled'],
    steps: ['start i1 blocking'],
  },
  {
    rule: 'failed and never restarted: the pod is over',
    pod: podOf({ restartPolicy: 'Never', initContainers: [box('i1')] }),
    seen: ['i1 exited 1'],
    steps: ['kill pod'],
  },
  {
    rule: 'failed, its own policy says never',
    pod: podOf({ initContainers: [box('i1', { restartPolicy: 'Never' })] }),
    seen: ['i1 exited 1'],
    steps: ['kill pod'],
  },
  {
    rule: 'failed, a rule says restart',
    pod: podOf({
      restartPolicy: 'Never',
      initContainers: [
        box('i1', { restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [7] } }] }),
      ],
    }),
    seen: ['i1 exited 7'],
    steps: ['start i1 blocking'],
  },
  {
    rule: 'unknown: killed and started again',
    pod: inits,
    seen: ['i1 unknown'],
    steps: ['kill i1: Init container is in "unknown" state, try killing it before restart', 'start i1 blocking'],
  },
  {
    rule: 'unknown and never restarted: the pod is over',
    pod: podOf({ restartPolicy: 'Never', initContainers: [box('i1')] }),
    seen: ['i1 unknown'],
    steps: ['kill pod'],
  },
  {
    rule: 'unknown: no rule is asked, as nobody knows an exit code',
    pod: podOf({
      restartPolicy: 'Never',
      initContainers: [
        box('i1', { restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [137] } }] }),
      ],
    }),
    seen: ['i1 unknown'],
    steps: ['kill pod'],
  },
  {
    rule: 'once a main container runs they are not looked at',
    pod: inits,
    seen: ['a running', 'i1 exited 1'],
    steps: [],
  },
  { rule: 'nor once one is created', pod: inits, seen: ['a created', 'i1 exited 1'], steps: ['start a instead of a'] },
  {
    rule: 'older ended instances are removed before a start',
    pod: inits,
    seen: ['i1#3 exited 1', 'i1#2 exited 1', 'i1#1 exited 1'],
    steps: ['remove 2', 'remove 1', 'start i1 blocking'],
  },
]);

const sided = (more: Partial<Container> = {}, after: readonly Container[] = [box('i2')]): Pod =>
  podOf({ initContainers: [sidecar('s1', more), ...after] });

table('sidecars', [
  { rule: 'the first does not block others when it fails to start', pod: sided(), steps: ['start s1'] },
  { rule: 'running without startup probe: the next', pod: sided(), seen: ['s1 running'], steps: ['start i2 blocking'] },
  { rule: 'startup not known yet: wait', pod: sided({ startupProbe: PROBE }), seen: ['s1 running'], steps: [] },
  {
    rule: 'startup still open: wait',
    pod: sided({ startupProbe: PROBE }),
    seen: ['s1 running'],
    startup: 'unknown',
    steps: [],
  },
  {
    rule: 'startup succeeded: the next',
    pod: sided({ startupProbe: PROBE }),
    seen: ['s1 running'],
    startup: 'success',
    steps: ['start i2 blocking'],
  },
  {
    rule: 'startup failed: killed and started again',
    pod: sided({ startupProbe: PROBE }),
    seen: ['s1 running'],
    startup: 'failure',
    steps: ['kill s1: Init container s1 failed startup probe', 'start s1'],
  },
  {
    rule: 'liveness failed: killed and started again, the next starts all the same',
    pod: sided({ livenessProbe: PROBE }),
    seen: ['s1 running'],
    liveness: 'failure',
    steps: ['kill s1: Init container s1 failed liveness probe', 'start s1', 'start i2 blocking'],
  },
  {
    rule: 'changed: killed and started again',
    pod: podOf({ initContainers: [sidecar('s1', { image: 'other' })] }),
    seen: ['a running', 's1 running'],
    steps: ['kill s1: Init container s1 definition changed', 'start s1'],
  },
  {
    rule: 'ended while later ones initialise: again',
    pod: sided(),
    seen: ['i2 running', 's1 exited 0'],
    steps: ['start s1'],
  },
  { rule: 'ended while the pod runs: again', pod: sided(), seen: ['a running', 's1 exited 0'], steps: ['start s1'] },
  {
    rule: 'forgotten by the runtime while the pod runs: again',
    pod: sided(),
    seen: ['a running'],
    steps: ['start s1'],
  },
  {
    rule: 'unknown: killed and started again',
    pod: sided(),
    seen: ['a running', 's1 unknown'],
    steps: ['kill s1: Init container is in "unknown" state, try killing it before restart', 'start s1'],
  },
  { rule: 'last and up: main ones', pod: sided({}, []), seen: ['s1 running'], steps: ['start a'] },
  {
    rule: 'does not keep a finished pod alive',
    pod: podOf({ restartPolicy: 'Never', initContainers: [sidecar('s1')] }),
    seen: ['a exited 0', 's1 running'],
    steps: ['kill pod'],
  },
  {
    rule: 'restarts even in a pod that never does',
    pod: podOf({ restartPolicy: 'Never', initContainers: [sidecar('s1')] }),
    seen: ['a running', 's1 exited 1'],
    steps: ['start s1'],
  },
  {
    rule: 'several start in spec order',
    pod: podOf({ initContainers: [sidecar('s1'), sidecar('s2')] }),
    seen: ['a running', 's2 exited 0', 's1 exited 0'],
    steps: ['start s1', 'start s2'],
  },
]);
