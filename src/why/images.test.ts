// A row for every cause: what is known, and what is said of it.
import { pullOf, pulled, start, checkRows } from './why.fixture.ts';

checkRows('why an image is not there', [
  [
    'ImageDiskFull',
    'failing',
    pulled('failed to pull and unpack image "reg.io/app:1": no space left on device'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because the disk for images is full, next try in 17 s.',
  ],
  [
    'ImageRateLimited',
    'failing',
    pulled('429 Too Many Requests - toomanyrequests: You have reached your pull rate limit'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because the registry limits how often this node may pull, next try in 17 s.',
  ],
  [
    'ImageAccessDenied',
    'failing',
    pulled('failed to authorize: failed to fetch anonymous token: 401 Unauthorized'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because the registry refused access, or the image does not exist there, next try in 17 s.',
  ],
  [
    'ImageWrongPlatform',
    'failing',
    pulled('no match for platform in manifest: not found'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because the image is not built for the processor of this node, next try in 17 s.',
  ],
  [
    'ImageNotFound',
    'failing',
    pulled('failed to resolve reference "reg.io/app:1": reg.io/app:1: not found'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because the registry does not have it, next try in 17 s.',
  ],
  [
    'RegistryNameUnknown',
    'failing',
    pulled('dial tcp: lookup reg.io on 127.0.0.53:53: no such host'),
    `Image "reg.io/app:1" of container "app" cannot be pulled because the registry's name cannot be resolved on this node, next try in 17 s.`,
  ],
  [
    'RegistryNotTrusted',
    'failing',
    pulled('tls: failed to verify certificate: x509: certificate signed by unknown authority'),
    `Image "reg.io/app:1" of container "app" cannot be pulled because the registry's certificate is not accepted, next try in 17 s.`,
  ],
  [
    'RegistryUnreachable',
    'failing',
    pulled('dial tcp 10.0.0.9:443: connect: connection refused'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because the registry does not answer, next try in 17 s.',
  ],
  [
    'RegistryTimeout',
    'failing',
    pulled('net/http: request canceled (Client.Timeout exceeded while awaiting headers)'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because the registry did not answer in time, next try in 17 s.',
  ],
  [
    'RegistryFailing',
    'failing',
    pulled('unexpected status from HEAD request: 502 Bad Gateway'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because the registry answers with an error of its own, next try in 17 s.',
  ],
  [
    'ImagePullFailed',
    'failing',
    pulled('something nobody has seen before'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because the runtime could not pull it, next try in 17 s.',
  ],
  [
    'ImageNeverPull',
    'failing',
    start('ErrImageNeverPull', 'Container image "reg.io/app:1" is not present with pull policy of Never'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because it is not on this node, or not for this pod, and its pull policy is Never, next try in 17 s.',
  ],
  [
    'ImageNameInvalid',
    'failing',
    start('InvalidImageName', 'Failed to apply default image tag "reg.io/APP": invalid reference format'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because its name is not a valid image name, next try in 17 s.',
  ],
  [
    'ImageInspectFailed',
    'failing',
    start('ImageInspectError', 'Failed to inspect image "": rpc error'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because the runtime could not say whether it is there, next try in 17 s.',
  ],
  [
    'RegistryUnreachable',
    'failing',
    start('RegistryUnavailable', 'image pull failed for reg.io/app:1 because the registry is unavailable'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because the registry is unavailable, next try in 17 s.',
  ],
  [
    'ImageSignatureInvalid',
    'failing',
    start('SignatureValidationFailed', 'image pull failed for reg.io/app:1 because the signature validation failed'),
    `Image "reg.io/app:1" of container "app" cannot be pulled because its signature does not satisfy the node's policy, next try in 17 s.`,
  ],
  [
    'ImagePullQueued',
    'waiting',
    { pulls: [pullOf({ phase: 'queued', ahead: 3 })] },
    'Image "reg.io/app:1" of container "app" has waited behind 3 other pulls for 1 min.',
  ],
  [
    'ImagePulling',
    'progressing',
    { pulls: [pullOf({})] },
    'Pulling image "reg.io/app:1" of container "app": 40 s so far.',
  ],
  [
    'ImagePulling',
    'progressing',
    {
      pulls: [
        pullOf({
          progress: {
            source: 'layers',
            doneBytes: 200e6,
            totalBytes: 812e6,
            bytesPerSecond: 5e6,
            remainingSeconds: 122,
            layers: [],
          },
        }),
      ],
    },
    'Pulling image "reg.io/app:1" of container "app": 24 % of 812 MB, 5.0 MB/s, 2 min 2 s left.',
  ],
  [
    'ImagePulling',
    'progressing',
    { pulls: [pullOf({ progress: { source: 'disk', doneBytes: 31e6, bytesPerSecond: 1.25e6, layers: [] } })] },
    'Pulling image "reg.io/app:1" of container "app": 31.0 MB done, 1.3 MB/s, 40 s so far.',
  ],
  [
    'ImagePulling',
    'progressing',
    { ...pulled('x'), pulls: [pullOf({})] },
    'Pulling image "reg.io/app:1" of container "app": 40 s so far.',
  ],
]);
