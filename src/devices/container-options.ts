// What the plugins' answers add to a container. Pure. Where two resources name the same thing, the first one counts.
import type { ContainerAllocateResponse } from './gen/device-plugin.ts';

export type DeviceAdditions = {
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly annotations: Readonly<Record<string, string>>;
  readonly mounts: readonly { readonly containerPath: string; readonly hostPath: string; readonly readonly: boolean }[];
  readonly devices: readonly {
    readonly containerPath: string;
    readonly hostPath: string;
    readonly permissions: string;
  }[];
  readonly cdiDevices: readonly string[];
};

export function containerOptions(answers: readonly ContainerAllocateResponse[]): DeviceAdditions {
  const env = firsts(answers.flatMap((a) => Object.entries(a.envs)));
  const annotations = firsts(answers.flatMap((a) => Object.entries(a.annotations)));
  const mounts = firsts(answers.flatMap((a) => a.mounts.map((m) => [m.containerPath, m] as const)));
  const devices = firsts(answers.flatMap((a) => a.devices.map((d) => [d.containerPath, d] as const)));
  const cdi = firsts(answers.flatMap((a) => a.cdiDevices.map((d) => [d.name, d.name] as const)));
  return {
    env: [...env].map(([name, value]) => ({ name, value })),
    annotations: Object.fromEntries(annotations),
    mounts: [...mounts.values()].map((m) => ({
      containerPath: m.containerPath,
      hostPath: m.hostPath,
      readonly: m.readOnly,
    })),
    devices: [...devices.values()],
    cdiDevices: [...cdi.values()],
  };
}

function firsts<V>(entries: readonly (readonly [string, V])[]): Map<string, V> {
  const map = new Map<string, V>();
  for (const [key, value] of entries) if (!map.has(key)) map.set(key, value);
  return map;
}
