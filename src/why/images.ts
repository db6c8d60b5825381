// Why a container's image is not there. Runtimes and registries explain themselves in free text only, so a failed pull is
// told apart by the words they are known to use; what is not recognised is quoted as it is.
import { humanProgress } from '../core/human.ts';
import type { ContainerRule, PodFacts, Why } from './facts.ts';
import type { PullView } from '../images/pull-progress.ts';
import { forSpan, nextTry, quote, retryOf, says, shortly } from './words.ts';

type PullCause = { readonly words: RegExp; readonly cause: string; readonly because: string; readonly todo: string };

/** The first whose words occur. */
const PULL_CAUSES: readonly PullCause[] = [
  {
    words: /no space left on device|disk quota exceeded/i,
    cause: 'ImageDiskFull',
    because: 'the disk for images is full',
    todo: 'Free space on the image filesystem (`crictl rmi --prune`, or lower imageGCHighThresholdPercent).',
  },
  {
    words: /toomanyrequests|429 Too Many Requests|rate limit/i,
    cause: 'ImageRateLimited',
    because: 'the registry limits how often this node may pull',
    todo: 'Pull with an account (imagePullSecrets), or through a mirror.',
  },
  {
    words:
      /401 Unauthorized|403 Forbidden|unauthorized|authentication required|authorization failed|denied: |insufficient_scope|no basic auth/i,
    cause: 'ImageAccessDenied',
    because: 'the registry refused access, or the image does not exist there',
    todo: 'Check the name of the image and the imagePullSecrets of the pod and of its service account.',
  },
  {
    words: /no match for platform|does not match the specified platform|exec format/i,
    cause: 'ImageWrongPlatform',
    because: 'the image is not built for the processor of this node',
    todo: 'Use an image built for this architecture, or choose another node.',
  },
  {
    words: /manifest unknown|not found|name unknown|404 Not Found|repository does not exist/i,
    cause: 'ImageNotFound',
    because: 'the registry does not have it',
    todo: 'Check the name and the tag of the image.',
  },
  {
    words: /no such host|name resolution|server misbehaving|EAI_AGAIN|i\/o timeout.*:53/i,
    cause: 'RegistryNameUnknown',
    because: "the registry's name cannot be resolved on this node",
    todo: 'Check the name of the image and the DNS of the node (/etc/resolv.conf).',
  },
  {
    words: /x509|certificate|tls: |HTTP response to HTTPS client/i,
    cause: 'RegistryNotTrusted',
    because: "the registry's certificate is not accepted",
    todo: "Give the runtime the registry's CA (for containerd: config_path with a hosts.toml).",
  },
  {
    words: /connection refused|no route to host|network is unreachable|connection reset/i,
    cause: 'RegistryUnreachable',
    because: 'the registry does not answer',
    todo: 'Check that the registry runs and that this node reaches it (firewall, proxy).',
  },
  {
    words: /timeout|deadline exceeded|timed out/i,
    cause: 'RegistryTimeout',
    because: 'the registry did not answer in time',
    todo: 'Check the network between this node and the registry.',
  },
  {
    words: /50[0-4] |internal server error|bad gateway|service unavailable/i,
    cause: 'RegistryFailing',
    because: 'the registry answers with an error of its own',
    todo: 'Ask whoever runs the registry; the pull is tried again by itself.',
  },
];

const UNKNOWN: Omit<PullCause, 'words'> = {
  cause: 'ImagePullFailed',
  because: 'the runtime could not pull it',
  todo: 'See the evidence; `crictl pull` on the node repeats the pull by hand.',
};

/** Reasons with one meaning each. */
const FIXED: Readonly<Record<string, Omit<PullCause, 'words'>>> = {
  ErrImageNeverPull: {
    cause: 'ImageNeverPull',
    because: 'it is not on this node, or not for this pod, and its pull policy is Never',
    todo: 'Load the image onto the node, or change imagePullPolicy.',
  },
  InvalidImageName: {
    cause: 'ImageNameInvalid',
    because: 'its name is not a valid image name',
    todo: 'Correct the name of the image.',
  },
  ImageInspectError: {
    cause: 'ImageInspectFailed',
    because: 'the runtime could not say whether it is there',
    todo: 'Look at the log of the runtime; its image store may be damaged.',
  },
  RegistryUnavailable: {
    cause: 'RegistryUnreachable',
    because: 'the registry is unavailable',
    todo: 'Check that the registry runs and that this node reaches it.',
  },
  SignatureValidationFailed: {
    cause: 'ImageSignatureInvalid',
    because: "its signature does not satisfy the node's policy",
    todo: "Sign the image, or correct the runtime's signature policy.",
  },
};

const PULL_REASONS = new Set(['ErrImagePull', 'ImagePullBackOff', ...Object.keys(FIXED)]);

/** The container waits because its image could not be had. */
export const imageFailed: ContainerRule = (facts, status) => {
  const { reason = '', message = '' } = status.state.waiting ?? {};
  if (!PULL_REASONS.has(reason)) return undefined;
  // A new try is better news than the failure of the last one.
  const again = pullOf(facts, status.image);
  if (again !== undefined) return pulling(again, facts, status.name);
  const found = FIXED[reason] ?? PULL_CAUSES.find((c) => says(message, c.words)) ?? UNKNOWN;
  const failures = facts.events.findLast(
    (e) => e.reason === 'Failed' && e.message?.includes(quote(status.image)) === true,
  );
  const times = (failures?.count ?? 1) > 1 ? [`failed ${failures?.count} times so far`] : [];
  return {
    state: 'failing',
    cause: found.cause,
    sentence: `Image ${quote(status.image)} of container ${quote(status.name)} cannot be pulled because ${found.because}${nextTry(facts)}.`,
    evidence: [`${reason}: ${shortly(message, 600)}`, ...times],
    todo: found.todo,
    container: status.name,
    ...retryOf(facts),
  };
};

/** The container waits while its image is pulled, or for its turn to be. */
export const imageUnderWay: ContainerRule = (facts, status) => {
  if (status.state.waiting === undefined) return undefined;
  const pull = pullOf(facts, status.image);
  return pull === undefined ? undefined : pulling(pull, facts, status.name);
};

const pullOf = ({ pulls }: PodFacts, image: string): PullView | undefined => pulls.find((p) => p.image === image);

function pulling(pull: PullView, facts: PodFacts, container: string): Why {
  const { nowMs, steady } = facts;
  if (pull.phase === 'queued')
    return {
      state: 'waiting',
      cause: 'ImagePullQueued',
      sentence:
        steady === true
          ? `Image ${quote(pull.image)} of container ${quote(container)} waits behind other pulls.`
          : `Image ${quote(pull.image)} of container ${quote(container)} has waited behind ${pull.ahead ?? 0} other pulls${forSpan(facts, pull.sinceMs)}.`,
      evidence: [],
      todo: 'To pull more at once set serializeImagePulls to false, or raise maxParallelImagePulls.',
      container,
    };
  return {
    state: 'progressing',
    cause: 'ImagePulling',
    sentence:
      steady === true
        ? `Image ${quote(pull.image)} of container ${quote(container)} is being pulled.`
        : `Pulling image ${quote(pull.image)} of container ${quote(container)}: ${humanProgress(pull.progress, nowMs - (pull.pullingSinceMs ?? pull.sinceMs))}.`,
    evidence: [],
    todo: '',
    container,
  };
}
