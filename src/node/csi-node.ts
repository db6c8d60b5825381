// Creates our CSINode object once per start. Until it exists the node is not Ready: attachable volumes depend on it.
import { aborted } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault, KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { isUnreachable } from '../kube/api-error.ts';
import { CSI_NODES, NODES, type CsiNode, type Resource, type Where } from '../kube/resources.ts';

type Named = Where & { readonly name: string };
export interface CsiNodeClient {
  get<T>(resource: Resource<T>, where: Named, signal: AbortSignal): Promise<T>;
  create<T>(resource: Resource<T>, where: Where, body: object, signal: AbortSignal): Promise<T>;
  replace<T>(resource: Resource<T>, where: Named, body: object, signal: AbortSignal): Promise<T>;
}

export type CsiNodeDeps = { client: CsiNodeClient; clock: Clock; log: Logger; onReady?: () => void };

export const CSI_NOT_READY = 'CSINode is not yet initialized';

const MIGRATED = 'storage.alpha.kubernetes.io/migrated-plugins';
const PLUGINS = ['aws-ebs', 'azure-disk', 'azure-file', 'cinder', 'gce-pd', 'portworx-volume', 'vsphere-volume']
  .map((name) => `kubernetes.io/${name}`)
  .join(',');
const PROBE_MS = 500;
/** Before each of four tries: from 10 ms, times five. */
const TRY_WAITS = [0, 10, 50, 250];
/** Before each round: from 30 ms, times eight, then every 15 seconds. After 140 seconds the agent ends, and starts again. */
const ROUND_WAITS = [0, 30, 240, 1920, ...Array.from({ length: 9 }, () => 15_360)];

export class CsiNodeInitializer implements Runnable {
  readonly name = 'csi-node';
  readonly #deps: CsiNodeDeps;
  readonly #nodeName: string;
  #ready = false;

  constructor(deps: CsiNodeDeps, options: { nodeName: string }) {
    this.#deps = deps;
    this.#nodeName = options.nodeName;
  }

  get ready(): boolean {
    return this.#ready;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, onReady } = this.#deps;
    await this.#serverAnswers(signal);
    let failure: unknown;
    for (const roundMs of ROUND_WAITS)
      for (const tryMs of TRY_WAITS) {
        const waitMs = tryMs === 0 ? roundMs : tryMs;
        if (waitMs > 0) await clock.sleep(waitMs, signal);
        if (signal.aborted) return;
        try {
          await this.#ensure(signal);
          this.#ready = true;
          onReady?.();
          await aborted(signal);
          return;
        } catch (err) {
          failure = err;
          // Nobody there is no refusal: an outage takes as long as it takes.
          if (isUnreachable(err)) await this.#serverAnswers(signal);
        }
      }
    if (!signal.aborted) throw new KubeletError('unavailable', 'failed to initialize CSINode', { cause: failure });
  }

  /** Any answer will do, also that there is no such object. */
  async #serverAnswers(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#deps;
    while (!signal.aborted) {
      try {
        await client.get(CSI_NODES, { name: this.#nodeName, query: { resourceVersion: '0' } }, signal);
        return;
      } catch (err) {
        if (!isUnreachable(err) && !isFault(err, 'cancelled')) return;
      }
      await clock.sleep(PROBE_MS, signal);
    }
  }

  async #ensure(signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const name = this.#nodeName;
    const node = await client.get(NODES, { name }, signal);
    const existing = await client.get(CSI_NODES, { name }, signal).catch((err: unknown) => {
      if (isFault(err, 'notFound')) return undefined;
      throw err;
    });
    if (existing !== undefined) {
      if (existing.metadata.annotations?.[MIGRATED] === PLUGINS) return;
      const annotations = { ...existing.metadata.annotations, [MIGRATED]: PLUGINS };
      const updated: CsiNode = { ...existing, metadata: { ...existing.metadata, annotations } };
      await client.replace(CSI_NODES, { name }, updated, signal);
      return;
    }
    const owner = { apiVersion: 'v1', kind: 'Node', name, uid: node.metadata.uid ?? '' };
    const fresh: CsiNode = {
      kind: 'CSINode',
      apiVersion: 'storage.k8s.io/v1',
      metadata: { name, annotations: { [MIGRATED]: PLUGINS }, ownerReferences: [owner] },
      spec: { drivers: null },
    };
    await client.create(CSI_NODES, {}, fresh, signal);
  }
}
