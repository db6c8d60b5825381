// Fits admission to the configuration, the gates and this machine.
import type { Environment } from '../config/environment.ts';
import { appArmorHostProblem } from './app-armor.ts';
import { PodAdmission, type PodAdmissionDeps, type PodAdmissionOptions } from './pod-admission.ts';
import { SysctlAllowlist } from './sysctls.ts';

export type AdmissionDeps = Omit<
  PodAdmissionDeps,
  'sysctls' | 'nodeConditions' | 'clock' | 'log' | 'rejections' | 'preemptions'
> & {
  /** What the node is short of, as conditions. */
  readonly pressures: PodAdmissionDeps['nodeConditions'];
};

export async function createAdmission(
  { clock, config, gates, log, registry }: Environment,
  deps: AdmissionDeps,
  opts: Pick<PodAdmissionOptions, 'declaredFeatures'> & { readonly kernelRelease: string },
): Promise<PodAdmission> {
  const { pressures, ...rest } = deps;
  return new PodAdmission(
    {
      ...rest,
      sysctls: new SysctlAllowlist(config.allowedUnsafeSysctls, opts.kernelRelease),
      nodeConditions: pressures,
      clock,
      log: log.child({ component: 'admission' }),
      rejections: registry.counter(
        'kubelet_admission_rejections_total',
        '[ALPHA] Cumulative number pod admission rejections by the Kubelet.',
        ['reason'],
      ),
      preemptions: registry.counter(
        'kubelet_preemptions',
        '[ALPHA] Cumulative number of pod preemptions by preemption resource',
        ['preemption_signal'],
      ),
    },
    {
      podLevelResources: gates.enabled('PodLevelResources'),
      declaredFeatures: opts.declaredFeatures,
      appArmorProblem: await appArmorHostProblem(),
    },
  );
}
