// The hosts files of pods: written when a container starts. A start or a write may have been cut off with the agent, so
// that those of pods that run already are looked at once.
import { readFile } from 'node:fs/promises';
import { uidOf, type Pod } from '../core/pod.ts';
import { hasRunningContainers, type PodSnapshot } from '../core/snapshot.ts';
import type { Logger } from '../lib/logger.ts';
import type { RuntimeFacts } from './facts.ts';
import { hostNetworkHostsFile, hostsFile } from './hosts-file.ts';
import type { PodFiles } from './pod-files.ts';

type Facts = Pick<RuntimeFacts, 'clusterDomain' | 'nodeHostsFile'>;

export class HostsFiles {
  readonly #files: Pick<PodFiles, 'writeHosts' | 'repairHosts'>;
  readonly #log: Logger;
  readonly #facts: Facts;
  /** Pods whose files are whole, by UID. */
  readonly #whole = new Set<string>();

  constructor(deps: { files: Pick<PodFiles, 'writeHosts' | 'repairHosts'>; log: Logger }, facts: Facts) {
    this.#files = deps.files;
    this.#log = deps.log;
    this.#facts = facts;
  }

  /** Its path; undefined for a pod without an address. */
  async write(pod: Pod, podIps: readonly string[]): Promise<string | undefined> {
    const text = await this.#textOf(pod, podIps);
    if (text === undefined) return undefined;
    const path = await this.#files.writeHosts(uidOf(pod), text);
    this.#whole.add(uidOf(pod));
    return path;
  }

  /** For a pod that may have run before the agent did. It never rejects: containers run on without the file. */
  async repairOnce(pod: Pod, snapshot: PodSnapshot): Promise<void> {
    const uid = uidOf(pod);
    if (this.#whole.has(uid) || !hasRunningContainers(snapshot)) return;
    try {
      const text = await this.#textOf(pod, snapshot.ips);
      if (text === undefined) return;
      await this.#files.repairHosts(uid, text);
      this.#whole.add(uid);
    } catch (err) {
      this.#log.warn('hosts file could not be looked at', { podUID: uid, err });
    }
  }

  forget(uid: string): void {
    this.#whole.delete(uid);
  }

  async #textOf(pod: Pod, podIps: readonly string[]): Promise<string | undefined> {
    if (pod.spec.hostNetwork === true)
      return hostNetworkHostsFile(pod, await readFile(this.#facts.nodeHostsFile, 'utf8'));
    return podIps.length === 0 ? undefined : hostsFile(pod, podIps, this.#facts.clusterDomain);
  }
}
