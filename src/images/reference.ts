// Image names as users write them: the reference grammar, the default registry and the default tag. Pure.
import { KubeletError } from '../lib/errors.ts';

export type ImageReference = {
  /** Registry and path, fully qualified: `docker.io/library/busybox`. */
  readonly repository: string;
  readonly tag: string | undefined;
  readonly digest: string | undefined;
};

const DOMAIN_COMPONENT = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const IPV6 = '\\[(?:[a-fA-F0-9:]+)\\]';
const DOMAIN = `(?:${DOMAIN_COMPONENT}(?:\\.${DOMAIN_COMPONENT})*|${IPV6})(?::[0-9]+)?`;
const PATH_COMPONENT = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const NAME = `(?:${DOMAIN}/)?${PATH_COMPONENT}(?:/${PATH_COMPONENT})*`;
const TAG = '[\\w][\\w.-]{0,127}';
const DIGEST = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}';
const REFERENCE = new RegExp(`^(${NAME})(?::(${TAG}))?(?:@(${DIGEST}))?$`);
const IDENTIFIER = /^[a-f0-9]{64}$/;
const DIGEST_HEX: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };
const MAX_NAME = 255;

const DEFAULT_DOMAIN = 'docker.io';

/** Throws `invalid` with the words users know from the Go kubelet. */
export function parseImageName(image: string): ImageReference {
  const problem = (text: string): KubeletError =>
    new KubeletError('invalid', `couldn't parse image name ${JSON.stringify(image)}: ${text}`);
  if (IDENTIFIER.test(image))
    throw problem(`invalid repository name (${image}), cannot specify 64-byte hexadecimal strings`);
  const { domain, rest } = splitDomain(image);
  const colon = rest.indexOf(':');
  const path = colon < 0 ? rest : rest.slice(0, colon);
  if (path !== path.toLowerCase())
    throw problem(`invalid reference format: repository name (${path}) must be lowercase`);
  const match = REFERENCE.exec(`${domain}/${rest}`);
  if (match === null) throw problem('invalid reference format');
  const [, repository = '', tag, digest] = match;
  if (repository.length > MAX_NAME) throw problem(`repository name must not be more than ${MAX_NAME} characters`);
  const fault = digest === undefined ? undefined : digestProblem(digest);
  if (fault !== undefined) throw problem(fault);
  return { repository, tag, digest };
}

function digestProblem(digest: string): string | undefined {
  const [algorithm = '', hex = ''] = digest.split(':');
  const length = DIGEST_HEX[algorithm];
  if (length === undefined) return 'unsupported digest algorithm';
  if (hex.length !== length) return 'invalid checksum digest length';
  return /^[a-f0-9]+$/.test(hex) ? undefined : 'invalid checksum digest format';
}

/** The first component is a registry when it looks like a host; otherwise the name is one of the default registry. */
function splitDomain(image: string): { domain: string; rest: string } {
  const slash = image.indexOf('/');
  const first = image.slice(0, slash);
  const isHost = slash >= 0 && (/[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase());
  let domain = isHost ? first : DEFAULT_DOMAIN;
  let rest = isHost ? image.slice(slash + 1) : image;
  if (domain === 'index.docker.io') domain = DEFAULT_DOMAIN;
  if (domain === DEFAULT_DOMAIN && !rest.includes('/')) rest = `library/${rest}`;
  return { domain, rest };
}

/** The name as written, without tag and digest. Throws as `parseImageName` does. */
export function withoutTag(image: string): string {
  const { tag, digest } = parseImageName(image);
  return image.slice(0, image.length - suffixLength('@', digest) - suffixLength(':', tag));
}

const suffixLength = (mark: string, text: string | undefined): number =>
  text === undefined ? 0 : mark.length + text.length;

/** The name as written, with `:latest` when it has neither tag nor digest. Throws as `parseImageName` does. */
export function withDefaultTag(image: string): string {
  const { tag, digest } = parseImageName(image);
  return tag === undefined && digest === undefined ? `${image}:latest` : image;
}
