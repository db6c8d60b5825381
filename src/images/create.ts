// Fits the parts of this folder together: credentials, pull records and the puller.
import { homedir } from 'node:os';
import type { Environment } from '../config/environment.ts';
import type { EventRecorder } from '../core/events.ts';
import type { CriConnection } from '../cri/connection.ts';
import { ContainerdContent } from '../cri/containerd-content.ts';
import type { CriImages } from '../cri/services.ts';
import type { VerificationPolicy } from './access.ts';
import { Credentials, type CredentialsDeps } from './credentials.ts';
import { imageFilesystem } from './image-fs.ts';
import { ImageGc, type ImageGcDeps } from './image-gc.ts';
import { ImagePuller, type ImagePullerDeps, type ImagePullerOptions } from './image-puller.ts';
import { ManifestSizes } from './manifest-size.ts';
import { hashProviderConfigs, loadProviderConfigs } from './provider-config.ts';
import { PullMeter } from './pull-meter.ts';
import { PullRecords } from './pull-records.ts';

export type Images = { readonly puller: ImagePuller; readonly records: PullRecords; readonly meter: PullMeter };

export type ImagesDeps = {
  readonly cri: Pick<CriConnection, 'images' | 'imageChannel'>;
  /** Told how far a pull is, where that is wanted (`--image-pull-progress`). */
  readonly onWaiting: NonNullable<ImagePullerDeps['onWaiting']>;
  readonly events: EventRecorder;
  /** Absent without an API server: nobody to ask for on behalf of a pod. */
  readonly tokens: { identityOf: CredentialsDeps['serviceAccountOf'] } | undefined;
};

export async function createImages(env: Environment, deps: ImagesDeps, signal: AbortSignal): Promise<Images> {
  const { flags, clock, registry } = env;
  const { cri, events, onWaiting, tokens } = deps;
  const { images } = cri;
  const serviceAccountOf: CredentialsDeps['serviceAccountOf'] = async (pod, stop) => tokens?.identityOf(pod, stop);
  const log = env.log.child({ component: 'images' });
  const providerConfig = flags.imageCredentialProviderConfig;
  const providers = providerConfig === '' ? [] : await loadProviderConfigs(providerConfig);
  const credentials = new Credentials(
    { clock, log, registry, serviceAccountOf },
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
  const sizes = new ManifestSizes(clock);
  const meter = new PullMeter({
    ...(flags.imagePullProgress && { sizeOf: (image, logins, stop) => sizes.sizeOf(image, logins, stop) }),
    content: new ContainerdContent(cri.imageChannel),
    freeBytes: async (stop) => (await imageFilesystem(images, stop)).availableBytes,
    clock,
    log,
  });
  const told = flags.imagePullProgress ? { onWaiting } : {};
  const puller = new ImagePuller(
    { images, credentials, records, events, clock, log, registry, meter, ...told },
    pullOptions(env),
  );
  await puller.prepare(signal);
  return { puller, records, meter };
}

export const pullOptions = ({ config, gates }: Pick<Environment, 'config' | 'gates'>): ImagePullerOptions => ({
  serialize: config.serializeImagePulls,
  maxParallel: config.maxParallelImagePulls,
  qps: config.registryPullQPS,
  burst: config.registryBurst,
  verification: (config.imagePullCredentialsVerificationPolicy || 'NeverVerifyPreloadedImages') as VerificationPolicy,
  verifyAccess: gates.enabled('KubeletEnsureSecretPulledImages'),
  allowlist: config.preloadedImagesVerificationAllowlist,
  sendRuntimeHandler: gates.enabled('RuntimeClassInImageCriApi'),
});

const IMAGE_GC_FIELDS = [
  'imageGCHighThresholdPercent',
  'imageGCLowThresholdPercent',
  'imageMinimumGCAge',
  'imageMaximumGCAge',
];

export type CreateImageGcDeps = Omit<ImageGcDeps, 'disk' | 'infra' | 'images'> & { readonly images: CriImages };

/** `sandboxImage` is in use by every pod although no container names it. */
export function createImageGc(
  { updates, clock, log, registry }: Environment,
  deps: CreateImageGcDeps,
  sandboxImage: string | undefined,
): ImageGc {
  const collector = new ImageGc(
    {
      ...deps,
      disk: (signal) => imageFilesystem(deps.images, signal),
      infra: { clock, log: log.child({ component: 'image-gc' }), registry },
    },
    updates.live(IMAGE_GC_FIELDS, (now) => ({
      get highThresholdPercent() {
        return now.current.imageGCHighThresholdPercent;
      },
      get lowThresholdPercent() {
        return now.current.imageGCLowThresholdPercent;
      },
      get minAgeMs() {
        return now.current.imageMinimumGCAgeMs;
      },
      get maxAgeMs() {
        return now.current.imageMaximumGCAgeMs;
      },
      keep: sandboxImage === undefined ? [] : [sandboxImage],
    })),
  );
  updates.subscribe(IMAGE_GC_FIELDS, () => collector.collectSoon());
  return collector;
}
