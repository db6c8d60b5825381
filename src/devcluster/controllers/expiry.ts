// Things that go with time: events after an hour, finished signing requests after one, bootstrap tokens when they say.
import { parseTimeMs } from '../../core/time.ts';
import { runEvery } from '../../lib/loop.ts';
import { deleteObject } from '../api/deletion.ts';
import { textAt, type ApiObject } from '../api/objects.ts';
import { resourceNamed } from '../api/resources.ts';
import { systemContext } from '../seed.ts';
import type { ControllerDeps } from './controller.ts';

const HOUR_MS = 3_600_000;
const CSR = 'certificates.k8s.io/certificatesigningrequests';

/** When an object's time is over, or undefined if it has none. */
function endOf(storage: string, object: ApiObject): number | undefined {
  const born = parseTimeMs(object.metadata.creationTimestamp);
  if (storage === 'events') {
    const seen =
      textAt(object, 'series', 'lastObservedTime') || textAt(object, 'lastTimestamp') || textAt(object, 'eventTime');
    return Math.max(born, parseTimeMs(seen || undefined)) + HOUR_MS;
  }
  if (storage === CSR) return born + (textAt(object, 'status', 'certificate') === '' ? 24 * HOUR_MS : HOUR_MS);
  if (storage === 'secrets' && object['type'] === 'bootstrap.kubernetes.io/token') {
    const expiration = Buffer.from(textAt(object, 'data', 'expiration'), 'base64').toString();
    return expiration === '' ? undefined : parseTimeMs(expiration);
  }
  return undefined;
}

export function runExpiry(deps: ControllerDeps, signal: AbortSignal): Promise<void> {
  const sweep = (): void => {
    const { registry, clock } = deps;
    for (const storage of ['events', CSR, 'secrets'])
      for (const stored of registry.store.list(storage)) {
        const end = endOf(storage, stored.object as ApiObject);
        if (end === undefined || end > clock.now()) continue;
        const { name, namespace = '' } = stored.object.metadata;
        deleteObject(registry, resourceNamed(storage), namespace, name, {}, systemContext());
      }
  };
  return runEvery(deps.clock, deps.log, { name: 'expiry', everyMs: 60_000, delayFirst: true }, sweep, signal);
}
