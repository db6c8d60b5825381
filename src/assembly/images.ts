// Images: credentials, pulling.
import { homedir } from 'node:os';
import type { Pod } from '../core/pod.ts';
import type { CriConnection } from '../cri/connection.ts';
import { ContainerdContent } from '../cri/containerd-content.ts';
import { Credentials } from '../images/credentials.ts';
import { imageFilesystem } from '../images/image-fs.ts';
import { ImagePuller } from '../images/image-puller.ts';
import { hashProviderConfigs, loadProviderConfigs } from '../images/provider-config.ts';
import { PullMeter } from '../images/pull-meter.ts';
import { PullRecords } from '../images/pull-records.ts';
import type { VerificationPolicy } from '../images/access.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';

export type Images = { readonly puller: ImagePuller; readonly records: PullRecords; readonly meter: PullMeter };

export async function buildImages(
  base: Foundation,
  { images, imageChannel }: CriConnection,
  cluster: ClusterPort,
  onWaiting: (pod: Pod, container: string, message: string) => void,
  signal: AbortSignal,
): Promise<Images> {
  const { config, flags, clock, registry, gates } = base;
  const log = base.log.child({ component: 'images' });
  const providerConfig = flags.imageCredentialProviderConfig;
  const providers = providerConfig === '' ? [] : await loadProviderConfigs(providerConfig);
  const credentials = new Credentials(
    { clock, log, registry, serviceAccountOf: (pod, stop) => cluster.serviceAccountOf(pod, stop) },
    {
      rootDir: flags.rootDir,
      workingDir: process.cwd(),
      homeDir: homedir(),
      providers,
      providerBinDir: flags.imageCredentialProviderBinDir,
      ...(providerConfig === '' ? {} : { providersHash: await hashProviderConfigs(providerConfig) }),
    },
  );
  await credentials.check();
  const records = new PullRecords({ clock, log }, flags.rootDir);
  const meter = new PullMeter({
    content: new ContainerdContent(imageChannel),
    freeBytes: async (stop) => (await imageFilesystem(images, stop)).availableBytes,
    clock,
    log,
  });
  const told = flags.imagePullProgress ? { onWaiting } : {};
  const puller = new ImagePuller(
    { images, credentials, records, events: cluster.events, clock, log, registry, meter, ...told },
    {
      serialize: config.serializeImagePulls,
      maxParallel: config.maxParallelImagePulls,
      qps: config.registryPullQPS,
      burst: config.registryBurst,
      verification: (config.imagePullCredentialsVerificationPolicy ||
        'NeverVerifyPreloadedImages') as VerificationPolicy,
      verifyAccess: gates.enabled('KubeletEnsureSecretPulledImages'),
      allowlist: config.preloadedImagesVerificationAllowlist,
      sendRuntimeHandler: gates.enabled('RuntimeClassInImageCriApi'),
    },
  );
  await puller.prepare(signal);
  return { puller, records, meter };
}
