// The version this kubelet reports: on the command line, in the node's status, in the user agent.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { builtCommit, builtVersion } from './built.ts';

/** The Kubernetes release whose behaviour this kubelet follows. */
export const KUBERNETES_VERSION = 'v1.36.0';

const packageFile = (): string => join(import.meta.dirname, '..', '..', 'package.json');

const PACKAGE_VERSION = builtVersion ?? packageVersion(readFileSync(packageFile(), 'utf8'));

/** `v1.36.0+kubelet-ts.0.1.0` */
export const KUBELET_VERSION = `${KUBERNETES_VERSION}+kubelet-ts.${PACKAGE_VERSION}`;

function packageVersion(text: string): string {
  const parsed: unknown = JSON.parse(text);
  if (typeof parsed === 'object' && parsed !== null && 'version' in parsed && typeof parsed.version === 'string')
    return parsed.version;
  throw new Error('package.json carries no version');
}

/** Run from a clone: what is checked out. Two small files, read only when somebody asks. */
function checkedOutCommit(): string {
  const git = join(import.meta.dirname, '..', '..', '.git');
  try {
    const head = readFileSync(join(git, 'HEAD'), 'utf8').trim();
    return head.startsWith('ref: ') ? readFileSync(join(git, head.slice(5)), 'utf8').trim() : head;
  } catch {
    return ''; // no clone, a work tree, or packed references: nothing depends on it
  }
}

/**
 * What --version prints. The short form is one line and stays so: kubeadm refuses a kubelet that says more. Commit and Node are
 * in the long form, `--version=raw`.
 */
export function versionText(raw: boolean): string {
  if (!raw) return `Kubernetes ${KUBELET_VERSION}\n`;
  const [, major = '', minor = ''] = /^v(\d+)\.(\d+)/.exec(KUBERNETES_VERSION) ?? [];
  const info = {
    Major: major,
    Minor: minor,
    GitVersion: KUBELET_VERSION,
    GitCommit: builtCommit ?? checkedOutCommit(),
    Platform: `linux/${process.arch === 'x64' ? 'amd64' : process.arch}`,
    Runtime: `node ${process.version}`,
  };
  return `version.Info{${Object.entries(info)
    .map(([key, value]) => `${key}:${JSON.stringify(value)}`)
    .join(', ')}}\n`;
}
