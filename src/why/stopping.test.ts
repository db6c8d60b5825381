// A row for every cause: what is known, and what is said of it.
import { NOW, ago, eventOf, withApp, running, deleting, checkRows, volume } from './why.fixture.ts';

checkRows('what a pod that is being stopped waits for', [
  [
    'Deleted',
    'stopping',
    deleting({ worker: { phase: 'syncing' } }),
    'The pod was deleted and is about to be stopped.',
  ],
  [
    'GracePeriod',
    'stopping',
    deleting({ worker: { phase: 'terminating', sinceMs: NOW - 12_000, graceSeconds: 30 }, status: running() }),
    'The pod is being stopped: container "app" has 18 s left to end.',
  ],
  [
    'StopQueued',
    'stopping',
    deleting({
      worker: { phase: 'terminating', sinceMs: NOW - 4000, graceSeconds: 30 },
      status: running(),
      underWay: [{ name: 'turn', sinceMs: NOW - 4000 }],
    }),
    'The pod waits for its turn to be stopped for 4 s: other pods are being stopped, and the processors are busy. Its grace period has not begun.',
  ],
  [
    'StoppingLate',
    'failing',
    deleting({ worker: { phase: 'terminating', sinceMs: NOW - 62_000, graceSeconds: 30 }, status: running() }),
    'The pod is being stopped: container "app" did not end in its grace period of 30 s and could not be killed for 32 s.',
  ],
  [
    'KillFailed',
    'failing',
    deleting({
      worker: { phase: 'terminating', sinceMs: NOW - 62_000, graceSeconds: 30, nextRunMs: NOW + 9000 },
      status: running(),
      events: [eventOf('FailedKillPod', 'error killing pod: context deadline exceeded', { count: 4 })],
    }),
    'The pod cannot be stopped: the runtime failed to end its containers, next try in 9 s.',
  ],
  [
    'SandboxStopping',
    'stopping',
    deleting({
      worker: { phase: 'terminating', sinceMs: NOW - 2000, graceSeconds: 30 },
      status: withApp({ terminated: { exitCode: 0, startedAt: ago(9), finishedAt: ago(1) } }),
    }),
    'The containers have ended; the network and the sandbox of the pod are being removed.',
  ],
  [
    'VolumesInUse',
    'stopping',
    deleting({ worker: { phase: 'terminated', sinceMs: NOW - 2000 }, ...volume('is held by process 4711 (rsync)') }),
    'The containers are stopped; the pod waits for its volumes to be unmounted: volume "data": is held by process 4711 (rsync) (for 40s).',
  ],
  [
    'CleaningUp',
    'stopping',
    deleting({
      worker: { phase: 'terminated', sinceMs: NOW - 2000 },
      underWay: [{ name: 'finish', sinceMs: NOW - 2000 }],
    }),
    'The containers are stopped; what is left of the pod on the node is being removed (finish for 2 s).',
  ],
  [
    'Finalizers',
    'stopping',
    deleting({ worker: { phase: 'finished' } }, { finalizers: ['batch.kubernetes.io/job-tracking'] }),
    'The pod is gone from this node; its object stays because of the finalizers "batch.kubernetes.io/job-tracking".',
  ],
  [
    'ApiServer',
    'stopping',
    deleting({ worker: { phase: 'finished' } }),
    'The pod is gone from this node; the API server has not confirmed the deletion yet.',
  ],
]);
