// What a person needs to know when the cluster is up.
import { readFileSync } from 'node:fs';
import { isAbsolute, join, relative } from 'node:path';
import { DEFAULT_PAGE_PORT } from './kubelet-files.ts';
import { findProgram } from './machine.ts';
import { DEFAULT_DIRECTORY, type Paths } from './paths.ts';
import { EXAMPLE_IMAGE } from './runtime.ts';
import type { Settings } from './settings.ts';

const COMMAND = join(import.meta.dirname, '..', '..', '..', 'bin', 'kubelet-dev');

/** `bin/kubelet-dev down` as it must be typed here. */
export function ownCommand(paths: Paths, verb: string): string {
  const near = relative(process.cwd(), COMMAND);
  const program = near.startsWith('..') || isAbsolute(near) ? COMMAND : near;
  return `${program} ${verb}${paths.directory === DEFAULT_DIRECTORY ? '' : ` --dir=${paths.directory}`}`;
}

/** With the token in it, once the kubelet has made one. */
function pageAddress(paths: Paths, settings: Settings): string {
  const address = `http://127.0.0.1:${settings.nodePagePort ?? DEFAULT_PAGE_PORT}/`;
  try {
    return `${address}?token=${readFileSync(paths.pageToken, 'utf8').trim()}`;
  } catch {
    // Not there: the page is switched off, or could not be opened.
    return `${address}   (token: ${paths.pageToken})`;
  }
}

export function summary(paths: Paths, settings: Settings, exampleIp: string | undefined): string {
  const kubectl = `kubectl --kubeconfig ${paths.admin}`;
  const rows: [string, string][] = [
    ['Look at it', `${kubectl} get pods -A`],
    ['', `or once: export KUBECONFIG=${paths.admin}`],
    ['Run your own', `kubectl run mine --image=${EXAMPLE_IMAGE} -- sleep 1000`],
    ['', `kubectl apply -f my-pod.yaml   (begin with a copy of ${paths.example})`],
    ['', `or put a manifest into ${paths.manifests}, which needs no API`],
    ['Storage', `kubectl apply -f ${paths.exampleClaim}   (a claim, and a pod that writes to it)`],
    ...(exampleIp === undefined
      ? []
      : ([['Example pod', `curl http://${exampleIp}:8080/   (default/hello)`]] as [string, string][])),
    ['What it does', `${ownCommand(paths, 'top')}   (why a pod does not run: ${ownCommand(paths, 'why')} NAME)`],
    ['API', `https://127.0.0.1:${settings.apiPort}`],
    ['Node health', `http://127.0.0.1:${settings.healthzPort}/healthz`],
    ['Node page', pageAddress(paths, settings)],
    ['Logs', paths.logs],
    ['Stop', `${ownCommand(paths, 'down')}     (files stay; the next start goes on from there)`],
    ['Remove', ownCommand(paths, 'reset')],
  ];
  const hint =
    findProgram('kubectl') === undefined ? ['There is no kubectl here yet: apt-get install kubernetes-client', ''] : [];
  return [
    '',
    `Node ${settings.nodeName} is up.`,
    '',
    ...rows.map(([what, how]) => `  ${what.padEnd(13)} ${how}`),
    '',
    ...hint,
    'This is a cluster of one node for development. For more, point the kubelet at a real cluster (README).',
    '',
  ].join('\n');
}
