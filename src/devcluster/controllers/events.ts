// Events of the controllers, in the form the scheduler and the workload controllers write them.
import { apiTime } from '../../core/time.ts';
import { randomTail } from '../api/names.ts';
import type { ApiObject } from '../api/objects.ts';
import type { Registry } from '../api/registry.ts';
import { resourceNamed } from '../api/resources.ts';
import { systemContext } from '../seed.ts';

export type EventText = {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
};

export function recordEvent(registry: Registry, component: string, about: ApiObject, event: EventText): void {
  const now = apiTime(registry.world.clock.now());
  const { name, namespace, uid, resourceVersion } = about.metadata;
  const same = registry.store
    .list('events', namespace ?? 'default')
    .find(
      (e) =>
        e.object['reason'] === event.reason &&
        e.object['message'] === event.message &&
        (e.object['involvedObject'] as { uid?: string } | undefined)?.uid === uid,
    );
  if (same !== undefined) {
    registry.modify(
      resourceNamed('events'),
      namespace ?? 'default',
      same.object.metadata.name,
      (draft) => ({ ...draft, count: Number(draft['count'] ?? 1) + 1, lastTimestamp: now }),
      systemContext(),
    );
    return;
  }
  const body = {
    metadata: { name: `${name}.${randomTail(16)}` },
    involvedObject: {
      kind: about.kind,
      apiVersion: about.apiVersion,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      uid,
      resourceVersion,
    },
    ...event,
    source: { component },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
    eventTime: null,
    reportingComponent: component,
    reportingInstance: '',
  };
  registry.create(resourceNamed('events'), namespace ?? 'default', body, systemContext());
}
