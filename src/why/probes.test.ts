// A row for every cause: what is known, and what is said of it.
import {
  ago,
  appWith,
  checkRows,
  conditions,
  containerIn,
  eventOf,
  http,
  podOf,
  probed,
  running,
  withApp,
} from './why.fixture.ts';

checkRows('why a container is not ready', [
  [
    'StartupProbeFailing',
    'waiting',
    {
      pod: appWith({ startupProbe: http }),
      status: running({ started: false }),
      probes: [probed('startup', 'failure', 'failure')],
    },
    'Container "app" has not finished starting: its startup probe (HTTP GET /ok on port 8080) has been failing for 20 s.',
  ],
  [
    'StartupProbePending',
    'progressing',
    { pod: appWith({ startupProbe: { ...http, initialDelaySeconds: 120 } }), status: running({ started: false }) },
    'Container "app" runs; its startup probe (HTTP GET /ok on port 8080) is asked for the first time in 30 s.',
  ],
  [
    'ReadinessProbeFailing',
    'waiting',
    {
      pod: appWith({ readinessProbe: http }),
      status: running(),
      probes: [probed('readiness', 'success', 'failure', 'failure', 'failure')],
    },
    'Container "app" runs but is not ready: its readiness probe (HTTP GET /ok on port 8080) has been failing for 30 s.',
  ],
  [
    'ReadinessProbePending',
    'progressing',
    { pod: appWith({ readinessProbe: { exec: { command: ['cat', '/ready'] } } }), status: running() },
    'Container "app" runs; its readiness probe (command cat /ready) has not answered yet.',
  ],
  [
    'LivenessProbeFailing',
    'failing',
    {
      pod: appWith({ livenessProbe: { tcpSocket: { port: 5432 } } }),
      status: running(),
      probes: [probed('liveness', 'failure')],
    },
    'Container "app" will be restarted: its liveness probe (TCP connection to port 5432) has been failing for 10 s.',
  ],
  [
    'ProbeStops',
    'failing',
    {
      pod: appWith({ livenessProbe: { exec: { command: ['false'] } } }),
      status: { ...running({ ready: true }), ...conditions('Ready') },
      probes: [probed('liveness', 'failure', 'failure')],
      events: [
        eventOf('Killing', 'Container app failed liveness probe, will be restarted', {
          involvedObject: { fieldPath: 'spec.containers{app}' },
        }),
      ],
    },
    'Container "app" is being stopped because its liveness probe (command false) failed; it is killed if it does not end within 30 s, and then started again.',
  ],
  [
    'LivenessProbeFailing',
    'failing',
    {
      pod: appWith({ livenessProbe: { exec: { command: ['false'] } } }),
      status: running(),
      probes: [probed('liveness', 'failure')],
      events: [
        eventOf('Killing', 'Container app failed liveness probe, will be restarted', {
          involvedObject: { fieldPath: 'spec.containers{app}' },
          lastTimestamp: ago(91),
        }),
      ],
    },
    'Container "app" will be restarted: its liveness probe (command false) has been failing for 10 s.',
  ],
  [
    'LivenessProbeFailing',
    'failing',
    {
      pod: appWith({ livenessProbe: { grpc: { port: 9000 } } }),
      status: { ...running({ ready: true }), ...conditions('Ready') },
      probes: [probed('liveness', 'success', 'failure')],
    },
    'Container "app" will be restarted if this goes on: its liveness probe (gRPC health check on port 9000) has been failing for 10 s.',
  ],
  [
    'Ready',
    'ready',
    {
      pod: appWith({ livenessProbe: http }),
      status: { ...running({ ready: true }), ...conditions('Ready') },
      probes: [probed('liveness', 'failure', 'success')],
    },
    'The pod is ready.',
  ],
  [
    'Ready',
    'ready',
    {
      pod: appWith({ livenessProbe: http }),
      status: {
        ...withApp({ terminated: { exitCode: 0, startedAt: ago(9), finishedAt: ago(1) } }, { ready: true }),
        ...conditions('Ready'),
      },
      probes: [probed('liveness', 'failure')],
    },
    'The pod is ready.',
  ],
  [
    'StartupProbePending',
    'progressing',
    {
      pod: podOf({ initContainers: [{ name: 'side', restartPolicy: 'Always', startupProbe: { ...http } }] }),
      status: {
        phase: 'Pending',
        ...conditions('PodReadyToStartContainers'),
        initContainerStatuses: [containerIn({ running: { startedAt: ago(5) } }, { name: 'side', started: false })],
      },
    },
    'Container "side" runs; its startup probe (HTTP GET /ok on port 8080) has not answered yet.',
  ],
  ['ContainerStarted', 'progressing', { status: running() }, 'Container "app" has just started.'],
  [
    'ReadinessGates',
    'waiting',
    { pod: podOf({ readinessGates: [{ conditionType: 'lb/attached' }] }), status: running({ ready: true }) },
    'All containers are ready; the pod waits for the readiness gate "lb/attached".',
  ],
]);
