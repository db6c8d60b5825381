// The rules of who may use an image that is already on the node.
import type { KubeletConfig } from './config-fields.ts';
import type { FeatureGates } from './feature-gates.ts';

const POLICIES = ['NeverVerify', 'NeverVerifyPreloadedImages', 'NeverVerifyAllowlistedImages', 'AlwaysVerify'];

export function allowlistErrors(c: KubeletConfig, gates: FeatureGates): string[] {
  const policy = c.imagePullCredentialsVerificationPolicy;
  const list = c.preloadedImagesVerificationAllowlist;
  if (!gates.enabled('KubeletEnsureSecretPulledImages')) {
    const errors: string[] = [];
    if (policy !== '')
      errors.push(
        '`imagePullCredentialsVerificationPolicy` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled',
      );
    if (list.length > 0)
      errors.push(
        '`preloadedImagesVerificationAllowlist` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled',
      );
    return errors;
  }
  const errors: string[] = [];
  if (!POLICIES.includes(policy))
    errors.push(
      `option ${JSON.stringify(policy)} specified for imagePullCredentialsVerificationPolicy. Valid options are "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages" or "AlwaysVerify"`,
    );
  if (list.length > 0 && policy !== 'NeverVerifyAllowlistedImages')
    errors.push(
      'can\'t set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVertificationPolicy` is not "NeverVerifyAllowlistedImages"',
    );
  for (const pattern of list) {
    const why = patternError(pattern);
    if (why !== undefined)
      errors.push(
        `invalid image pattern in \`preloadedImagesVerificationAllowlist\`: ${JSON.stringify(pattern)}: ${why}`,
      );
  }
  return errors;
}

/** A registry host and a repository, or a prefix of them that ends in `/*`. */
function patternError(pattern: string): string | undefined {
  if (pattern === '') return 'the pattern is empty';
  if (/\s/.test(pattern)) return 'it contains white space';
  const name = pattern.endsWith('/*') ? pattern.slice(0, -2) : pattern;
  if (name.includes('*')) return 'a wildcard may only be the trailing "/*"';
  if (name === '') return 'a wildcard needs at least a registry host before it';
  if (name.includes('@')) return 'it carries a digest';
  const [host = '', ...path] = name.split('/');
  if (path.some((part) => part.includes(':'))) return 'it carries a tag';
  if (path.length === 0 && /:(?!\d+$)/.test(host)) return 'it carries a tag';
  if (path.length === 0 && !pattern.endsWith('/*') && host.includes(':')) return 'it carries a tag';
  if (path.some((part) => !/^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/.test(part))) return 'it is no image name';
  if (!/^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?$/.test(host)) return 'it is no image name';
  return undefined;
}
