// Tells the cluster which drivers this node has: the CSINode object, and an annotation and topology labels of the Node.
// Each write is a read, a change and a write, repeated when somebody else wrote in between.
import type { Node } from '../../core/node.ts';
import { CSI_NODES, NODES, type CsiNode, type Resource, type Where } from '../../kube/resources.ts';
import type { Clock } from '../../lib/clock.ts';
import { isFault, KubeletError, messageOf } from '../../lib/errors.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import {
  csiNodeWithDriver,
  csiNodeWithoutDriver,
  isOwnedBy,
  newCsiNode,
  nodeWithDriver,
  nodeWithoutDriver,
  type DriverOnNode,
  type NodePatch,
} from './node-objects.ts';

type Named = Where & { readonly name: string };
export interface NodeInfoClient {
  get<T>(resource: Resource<T>, where: Named, signal: AbortSignal): Promise<T>;
  create<T>(resource: Resource<T>, where: Where, body: object, signal: AbortSignal): Promise<T>;
  replace<T>(resource: Resource<T>, where: Named, body: object, signal: AbortSignal): Promise<T>;
  patch<T>(resource: Resource<T>, where: Named, body: object, signal: AbortSignal): Promise<T>;
  delete(resource: Resource<unknown>, where: Where, options: object, signal: AbortSignal): Promise<void>;
}

export type NodeInfoDeps = { readonly client: NodeInfoClient; readonly clock: Clock };

const TRIES = 4;
const PAUSE_MS = 10;
const FACTOR = 5;
const JITTER = 0.1;

export class CsiNodeInfo {
  readonly #deps: NodeInfoDeps;
  readonly #nodeName: string;
  /** One writer at a time: a driver that goes and comes back is written in that order. */
  readonly #turn = new Semaphore(1);

  constructor(deps: NodeInfoDeps, options: { nodeName: string }) {
    this.#deps = deps;
    this.#nodeName = options.nodeName;
  }

  async install(driver: string, on: DriverOnNode, signal: AbortSignal): Promise<void> {
    if (on.nodeId === '')
      throw new KubeletError('invalid', 'error adding CSI driver node info: driverNodeID must not be empty');
    await this.#turn.run(signal, async () => {
      await this.#node((node) => nodeWithDriver(node, driver, on), signal);
      await this.#csiNode((object) => csiNodeWithDriver(object, driver, on), signal);
    });
  }

  /** Only what CSINode says: the number of volumes may change while a driver is there. */
  async update(driver: string, on: DriverOnNode, signal: AbortSignal): Promise<void> {
    await this.#turn.run(signal, () => this.#csiNode((object) => csiNodeWithDriver(object, driver, on), signal));
  }

  /** Does nothing if by its turn the driver is there again. */
  async uninstall(driver: string, isBack: () => boolean, signal: AbortSignal): Promise<void> {
    await this.#turn.run(signal, async () => {
      if (isBack()) return;
      await this.#csiNode((object) => csiNodeWithoutDriver(object, driver), signal, false);
      await this.#node((node) => nodeWithoutDriver(node, driver), signal);
    });
  }

  #node(change: (node: Node) => NodePatch | undefined, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const name = this.#nodeName;
    return this.#repeat('Node', signal, async () => {
      const patch = change(await client.get(NODES, { name }, signal));
      if (patch !== undefined) await client.patch(NODES, { name, subresource: 'status' }, patch, signal);
    });
  }

  #csiNode(change: (object: CsiNode) => CsiNode | undefined, signal: AbortSignal, create = true): Promise<void> {
    const { client } = this.#deps;
    const name = this.#nodeName;
    return this.#repeat('CSINode', signal, async () => {
      const node = await client.get(NODES, { name }, signal);
      const existing = await unlessMissing(client.get(CSI_NODES, { name }, signal));
      if (existing === undefined) {
        if (!create) return;
        const changed = change(newCsiNode(node));
        if (changed !== undefined) await client.create(CSI_NODES, {}, changed, signal);
        return;
      }
      if (!isOwnedBy(existing, node)) {
        await client.delete(CSI_NODES, { name }, {}, signal);
        throw new KubeletError('conflict', `the CSINode ${name} belonged to another node and was deleted`);
      }
      const changed = change(existing);
      if (changed !== undefined) await client.replace(CSI_NODES, { name }, changed, signal);
    });
  }

  async #repeat(what: string, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    const { clock } = this.#deps;
    for (let attempt = 0; ; attempt++) {
      try {
        await work();
        return;
      } catch (err) {
        signal.throwIfAborted();
        if (attempt + 1 >= TRIES)
          throw new KubeletError(
            'unavailable',
            `error updating ${what} object with CSI driver node info: ${messageOf(err)}`,
            { cause: err },
          );
        await clock.sleep(PAUSE_MS * FACTOR ** attempt * (1 + JITTER * clock.random()), signal);
        signal.throwIfAborted();
      }
    }
  }
}

async function unlessMissing<T>(get: Promise<T>): Promise<T | undefined> {
  try {
    return await get;
  } catch (err) {
    if (isFault(err, 'notFound')) return undefined;
    throw err;
  }
}
