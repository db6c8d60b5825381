// All controllers of the one-node cluster, by name.
import type { Clock, Timer } from '../../lib/clock.ts';
import type { ClusterPki } from '../api/pki/pki.ts';
import { runControllers, type Controller, type ControllerDeps } from './controller.ts';
import { CronJobController } from './cron-jobs.ts';
import { DaemonSetController } from './daemon-sets.ts';
import { DeploymentController } from './deployments.ts';
import { EndpointSliceController } from './endpoint-slices.ts';
import { runExpiry } from './expiry.ts';
import { GarbageCollector } from './garbage-collector.ts';
import { JobController } from './jobs.ts';
import { NamespaceController } from './namespaces.ts';
import { NodeHealth } from './node-health.ts';
import { ReplicaSetController } from './replica-sets.ts';
import { Scheduler } from './scheduler.ts';
import { SigningRequestController } from './signing-requests.ts';
import { StatefulSetController } from './stateful-sets.ts';
import { SystemObjects } from './system-objects.ts';
import { AttachDetach } from './volumes/attacher.ts';
import { CsiAttacher } from './volumes/attachments.ts';
import { VolumeBinder } from './volumes/binder.ts';
import { CsiDrivers, type CsiDriver } from './volumes/csi-drivers.ts';
import { EphemeralClaims } from './volumes/ephemeral-claims.ts';
import { VolumeProtection } from './volumes/protection.ts';
import { Provisioner } from './volumes/provisioner.ts';
import { Resizer } from './volumes/resizer.ts';

export type ControllerName =
  | 'attach-detach'
  | 'cron-jobs'
  | 'csi-attacher'
  | 'daemon-sets'
  | 'deployments'
  | 'endpoint-slices'
  | 'ephemeral-claims'
  | 'garbage-collector'
  | 'jobs'
  | 'namespaces'
  | 'node-health'
  | 'provisioner'
  | 'replica-sets'
  | 'resizer'
  | 'scheduler'
  | 'signing-requests'
  | 'stateful-sets'
  | 'system-objects'
  | 'volume-binder'
  | 'volume-protection';

/** Timers that end with `signal`, so that nothing fires into a closed store. */
function endingWith(clock: Clock, signal: AbortSignal): Clock {
  const timers = new Set<Timer>();
  signal.addEventListener('abort', () => timers.forEach((timer) => timer.cancel()), { once: true });
  return {
    ...clock,
    sleep: (ms, until) => clock.sleep(ms, until),
    after(ms, fn) {
      const timer = clock.after(ms, () => {
        timers.delete(timer);
        fn();
      });
      timers.add(timer);
      return { cancel: () => void (timers.delete(timer) && timer.cancel()) };
    },
  };
}

export type ControllerOptions = {
  readonly only?: readonly ControllerName[];
  readonly csiDrivers?: readonly CsiDriver[];
  /** Makes what every cluster has and this one lacks. */
  readonly seed: () => void;
};

/** Runs the named controllers (all, when none are named) until `signal` aborts. */
export async function runAllControllers(
  given: ControllerDeps,
  pki: ClusterPki,
  { only, csiDrivers = [], seed }: ControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  const deps: ControllerDeps = { ...given, clock: endingWith(given.clock, signal) };
  const wakes = new Map<string, (key: string) => void>();
  const wake =
    (name: ControllerName) =>
    (key: string): void =>
      wakes.get(name)?.(key);
  const drivers = new CsiDrivers(deps.clock, csiDrivers, signal);
  const all: readonly Controller[] = [
    new Scheduler(deps),
    new GarbageCollector(deps),
    new NamespaceController(deps, pki.caPem),
    new SigningRequestController(deps, pki),
    new SystemObjects(seed),
    new NodeHealth(deps, wake('node-health')),
    new VolumeBinder(deps),
    new VolumeProtection(deps),
    new EphemeralClaims(deps),
    new Provisioner(deps, drivers),
    new AttachDetach(deps),
    new CsiAttacher(deps, drivers),
    new Resizer(deps, drivers),
    new EndpointSliceController(deps),
    new ReplicaSetController(deps, wake('replica-sets')),
    new DeploymentController(deps),
    new DaemonSetController(deps, wake('daemon-sets')),
    new StatefulSetController(deps, wake('stateful-sets')),
    new JobController(deps, wake('jobs')),
    new CronJobController(deps, wake('cron-jobs')),
  ];
  const chosen = only === undefined ? all : all.filter((c) => only.includes(c.name as ControllerName));
  await Promise.all([runControllers(deps, chosen, wakes, signal), runExpiry(deps, signal)]);
  drivers.close();
}
