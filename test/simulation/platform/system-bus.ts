// `host/systemd/system-bus.ts` without a bus: logind is asked directly. There is none where the world has no shutdowns.
import type { SystemBus } from '../../../src/host/systemd/system-bus.ts';
import { KubeletError } from '../../../src/lib/errors.ts';
import type { DBusValue } from '../../../src/lib/dbus/values.ts';
import { later, machine, type Logind } from '../engine/machine.ts';

const LATENCY_MS = 0.5;

function logind(): Logind {
  const { logind: there } = machine();
  if (there?.isReachable !== true) throw new KubeletError('unavailable', '/run/dbus/system_bus_socket: ECONNREFUSED');
  return there;
}

const bus = {
  property: (_at: unknown, name: string): Promise<DBusValue> => later(LATENCY_MS, () => logind().property(name)),

  async watch(
    _rule: unknown,
    on: (message: { readonly body: readonly DBusValue[] }) => void,
    signal: AbortSignal,
    onStart: () => void,
  ): Promise<void> {
    await later(LATENCY_MS, () => logind());
    if (signal.aborted) return;
    await new Promise<void>((resolve, reject) => {
      const lost = (): void => reject(new KubeletError('unavailable', 'the connection was closed'));
      const end = logind().listen((down) => on({ body: [down] }), lost);
      signal.addEventListener('abort', () => (end(), resolve()), { once: true });
      onStart();
    });
  },
};

const units = { kill: (): Promise<void> => later(LATENCY_MS, () => undefined) };

export const systemBus = (): SystemBus =>
  ({ bus, units, callForFile: () => later(LATENCY_MS, () => logind().inhibit()) }) as unknown as SystemBus;
