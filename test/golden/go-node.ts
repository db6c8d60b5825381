// A node as the Go kubelet leaves it: its recorded requests are made to a runtime in memory, its pods' directories are
// laid out as recorded, with the mounts it makes.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Pod } from '../../src/core/pod.ts';
import { ContainerState } from '../../src/cri/gen/cri.ts';
import type { FakeCri } from '../fakes/fake-cri.ts';
import { recordedRequest, type Recording } from './recording.ts';

const never = new AbortController().signal;

export type GoNode = {
  readonly cri: FakeCri;
  readonly rootDir: string;
  readonly podLogsDir: string;
  readonly cgroupRoot: string;
};

/** What differs between a recording and this node. */
type Replace = (text: string) => string;

function replaced(value: unknown, replace: Replace): unknown {
  if (typeof value === 'string') return replace(value);
  if (Array.isArray(value)) return value.map((item) => replaced(item, replace));
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replaced(item, replace)]));
}

/** Up to the first call of the pod's deletion; what ends by itself has ended. */
export async function runAsRecorded(node: GoNode, scenario: Recording, pod: Pod): Promise<void> {
  const recordedUid = scenario.pods.start.metadata.uid ?? '';
  const image = [...node.cri.state.images.keys()][0] ?? '';
  const ids = new Map<string, string>();
  const replace: Replace = (text) => {
    const named = text
      .replaceAll(recordedUid, pod.metadata.uid ?? '')
      .replace(/^\/var\/lib\/kubelet/, node.rootDir)
      .replace(/^\/var\/log\/pods/, node.podLogsDir)
      .replace(/^\/kubepods/, `${node.cgroupRoot}/kubepods`)
      .replace(/^sha256:[0-9a-f]{64}$/, image);
    return ids.get(named) ?? named;
  };
  const isInit = new Set((pod.spec.initContainers ?? []).filter((c) => c.restartPolicy !== 'Always').map((c) => c.name));
  const { runtime, state } = node.cri;
  for (const call of scenario.calls) {
    const request = replaced(recordedRequest(call), replace) as never;
    if (call.call === 'RunPodSandbox')
      ids.set(String(call.response?.['pod_sandbox_id']), (await runtime.runPodSandbox(request, never)).podSandboxId);
    else if (call.call === 'CreateContainer')
      ids.set(String(call.response?.['container_id']), (await runtime.createContainer(request, never)).containerId);
    else if (call.call === 'StartContainer') {
      const { containerId } = request as { containerId: string };
      await runtime.startContainer(request, never);
      const made = state.container(containerId);
      if (isInit.has(made.config.metadata?.name ?? '') && made.state === ContainerState.CONTAINER_RUNNING)
        state.exit(containerId, 0);
    } else if (call.call.startsWith('Stop')) return;
  }
}

/** The filesystems in memory that the Go kubelet mounts. */
const TMPFS = /^\.\/volumes\/kubernetes\.io~((projected|secret|downward-api)\/[^/]+|empty-dir\/mem)$/;

/** `files.txt`: mode, owner, kind, path, target of the link. */
export function layOut(podDir: string, listing: string): void {
  for (const line of readFileSync(listing, 'utf8').trim().split('\n')) {
    const [, mode = '', uid = '', gid = '', kind = '', path = '', target = ''] =
      /^.(\S{9}) (\d+):(\d+) (.) (.*?) -> (.*)$/.exec(line) ?? [];
    const at = join(podDir, path);
    mkdirSync(dirname(at), { recursive: true });
    if (kind === 'd') mkdirSync(at, { recursive: true });
    if (kind === 'd' && TMPFS.test(path)) execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', at]);
    if (kind === 'f') writeFileSync(at, '');
    if (kind === 'l') symlinkSync(target, at);
    execFileSync('chown', ['-h', `${uid}:${gid}`, at]);
    if (kind !== 'l') chmodSync(at, modeOf(mode));
  }
}

/** `rwxr-s--t` */
function modeOf(text: string): number {
  const bits = text.split('').reduce((sum, letter, i) => sum | (/[-ST]/.test(letter) ? 0 : 1 << (8 - i)), 0);
  const set = (at: number, letters: string, bit: number): number => (letters.includes(text[at] ?? ' ') ? bit : 0);
  return bits | set(2, 'sS', 0o4000) | set(5, 'sS', 0o2000) | set(8, 'tT', 0o1000);
}
