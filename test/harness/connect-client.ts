// A client of the kind the kubelet uses, for tests: no budget, nothing logged.
import { readFile } from 'node:fs/promises';
import type { KubeClient } from '../../src/kube/client.ts';
import { connectApi } from '../../src/kube/connect.ts';
import { resolveKubeconfig } from '../../src/kube/kubeconfig.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';

export async function connectClient(kubeconfigPath: string): Promise<KubeClient> {
  const access = await resolveKubeconfig(await readFile(kubeconfigPath, 'utf8'), kubeconfigPath);
  const { main } = connectApi({ clock: systemClock, log: silentLogger }, access, {
    version: 'test',
    architecture: 'amd64',
    qps: 0,
    burst: 0,
    eventQps: 0,
    eventBurst: 0,
    leaseDurationSeconds: 40,
    statusUpdateMs: 10_000,
  });
  return main;
}
