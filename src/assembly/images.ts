// Images: credentials, pulling.
import { homedir } from 'node:os';
import type { CriImages } from '../cri/services.ts';
import { Credentials } from '../images/credentials.ts';
import { ImagePuller } from '../images/image-puller.ts';
import { hashProviderConfigs, loadProviderConfigs } from '../images/provider-config.ts';
import { PullRecords } from '../images/pull-records.ts';
import type { VerificationPolicy } from '../images/access.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';

export type Images = { readonly puller: ImagePuller; readonly records: PullRecords };

export async function buildImages(
  base: Foundation,
  images: CriImages,
  cluster: ClusterPort,
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
  const puller = new ImagePuller(
    { images, credentials, records, events: cluster.events, clock, log, registry },
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
  return { puller, records };
}
