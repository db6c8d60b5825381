// `kubelet node doctor`: with a kubelet that answers its own settings are used, without one the defaults.
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import type { Ask } from '../socket-client.ts';
import { findings, findingsText, type Finding } from './checks.ts';
import { gather } from './gather.ts';

export type DoctorDeps = { readonly clock: Clock; readonly ask: Ask };
export type DoctorOptions = { readonly rootDir: string; readonly runtimeEndpoint: string | undefined };

type Settings = {
  readonly failSwapOn?: boolean;
  readonly containerRuntimeEndpoint?: string;
  readonly cgroupDriver?: string;
  readonly rotateCertificates?: boolean;
};

/** The kubelet does not say which one it uses; kubeadm's is the one that embeds a certificate. */
const KUBEADM_KUBECONFIG = '/etc/kubernetes/kubelet.conf';
const DEFAULT_ENDPOINT = 'unix:///run/containerd/containerd.sock';

export async function doctor(
  { clock, ask }: DoctorDeps,
  { rootDir, runtimeEndpoint }: DoctorOptions,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly findings: readonly Finding[]; readonly failed: boolean }> {
  const { settings, problem } = await settingsOf(ask, signal);
  const facts = await gather(
    clock,
    {
      rootDir,
      runtimeEndpoint: runtimeEndpoint ?? settings.containerRuntimeEndpoint ?? DEFAULT_ENDPOINT,
      failSwapOn: settings.failSwapOn ?? true,
      kubeconfig: KUBEADM_KUBECONFIG,
      rotateCertificates: settings.rotateCertificates,
      kubelet: {
        answers: problem === undefined,
        ...(problem === undefined ? {} : { problem }),
        ...(settings.cgroupDriver === undefined ? {} : { cgroupDriver: settings.cgroupDriver }),
      },
    },
    signal,
  );
  const found = findings(facts);
  return { text: findingsText(found), findings: found, failed: found.some((f) => f.level === 'failure') };
}

async function settingsOf(ask: Ask, signal: AbortSignal): Promise<{ settings: Settings; problem?: string }> {
  try {
    const { kubeletconfig } = JSON.parse(await ask('/configz', signal)) as { kubeletconfig?: Settings };
    return { settings: kubeletconfig ?? {} };
  } catch (err) {
    signal.throwIfAborted();
    return { settings: {}, problem: messageOf(err) };
  }
}
