// Calls of one registered driver, each with a deadline. Capabilities are asked once per connection: an answer is kept until
// it ends, or a call finds the driver away.
import type { Clock } from '../../lib/clock.ts';
import {
  Node,
  NodeRpcType,
  type NodeExpandVolumeRequest,
  type NodeGetInfoResponse,
  type NodeGetVolumeStatsResponse,
  type NodePublishVolumeRequest,
  type NodeStageVolumeRequest,
} from '../../lib/csi-api/gen/csi.ts';
import { KubeletError } from '../../lib/errors.ts';
import { GrpcChannel } from '../../lib/grpc/channel.ts';
import type { Rpc } from '../../lib/grpc/rpc.ts';
import { GrpcCode, GrpcError } from '../../lib/grpc/status.ts';
import type { CsiMetrics } from './csi-metrics.ts';

export type NodeCapability = keyof typeof NodeRpcType;
export type NodeCapabilities = ReadonlySet<NodeCapability>;

export type CsiClientDeps = { readonly clock: Clock; readonly metrics?: CsiMetrics };

const CALL_MS = 120_000;
const STATS_MS = 5_000;
const STATS_PAUSE_MS = 300_000;

const NAMES = new Map<number, NodeCapability>(
  Object.entries(NodeRpcType).map(([name, value]) => [value as number, name as NodeCapability]),
);

export class CsiClient {
  readonly driver: string;
  readonly #deps: CsiClientDeps;
  readonly #channel: GrpcChannel;
  #capabilities: NodeCapabilities | undefined;
  #statsAgainAt = -Infinity;

  constructor(deps: CsiClientDeps, options: { driver: string; endpoint: string }) {
    this.#deps = deps;
    this.driver = options.driver;
    const socketPath = options.endpoint.replace(/^unix:(\/\/)?/, '');
    // Whoever listens there next may be another program.
    const onDisconnect = (): void => void (this.#capabilities = undefined);
    this.#channel = new GrpcChannel(deps.clock, { target: { socketPath }, onDisconnect });
  }

  close(): void {
    this.#channel.close();
  }

  async capabilities(signal: AbortSignal): Promise<NodeCapabilities> {
    if (this.#capabilities !== undefined) return this.#capabilities;
    const { capabilities } = await this.#call(Node.nodeGetCapabilities, {}, signal);
    const names = capabilities.flatMap(({ rpc }) => NAMES.get(rpc?.type ?? 0) ?? []);
    return (this.#capabilities = new Set(names));
  }

  info(signal: AbortSignal): Promise<NodeGetInfoResponse> {
    return this.#call(Node.nodeGetInfo, {}, signal);
  }

  /** `migrated`, here and below: the volume is of a kind that was moved to CSI. Only metrics show it. */
  async stage(request: NodeStageVolumeRequest, migrated: boolean, signal: AbortSignal): Promise<void> {
    await this.#call(Node.nodeStageVolume, request, signal, { migrated });
  }

  async unstage(volumeId: string, stagingTargetPath: string, signal: AbortSignal): Promise<void> {
    await this.#call(Node.nodeUnstageVolume, { volumeId, stagingTargetPath }, signal);
  }

  async publish(request: NodePublishVolumeRequest, migrated: boolean, signal: AbortSignal): Promise<void> {
    await this.#call(Node.nodePublishVolume, request, signal, { migrated });
  }

  async unpublish(volumeId: string, targetPath: string, signal: AbortSignal): Promise<void> {
    await this.#call(Node.nodeUnpublishVolume, { volumeId, targetPath }, signal);
  }

  async expand(request: NodeExpandVolumeRequest, migrated: boolean, signal: AbortSignal): Promise<void> {
    await this.#call(Node.nodeExpandVolume, request, signal, { migrated });
  }

  /** One that does not answer is not asked for a while: the statistics of other pods would wait for it every time. */
  async stats(volumeId: string, volumePath: string, signal: AbortSignal): Promise<NodeGetVolumeStatsResponse> {
    const { clock } = this.#deps;
    const from = clock.monotonic();
    if (from < this.#statsAgainAt)
      throw new KubeletError('unavailable', `driver ${this.driver} did not answer for its statistics`);
    try {
      const request = { volumeId, volumePath, stagingTargetPath: '' };
      return await this.#call(Node.nodeGetVolumeStats, request, signal, { deadlineMs: STATS_MS });
    } catch (err) {
      // One that says itself that something took too long has answered.
      if (clock.monotonic() - from >= STATS_MS) this.#statsAgainAt = clock.monotonic() + STATS_PAUSE_MS;
      throw err;
    }
  }

  async #call<Req, Res>(
    rpc: Rpc<Req, Res>,
    request: Req,
    signal: AbortSignal,
    options: { readonly deadlineMs?: number; readonly migrated?: boolean } = {},
  ): Promise<Res> {
    const { clock, metrics } = this.#deps;
    const { deadlineMs = CALL_MS, migrated = false } = options;
    const from = clock.monotonic();
    let code = 'OK';
    try {
      return await this.#channel.unary(rpc, request, { signal, deadlineMs });
    } catch (err) {
      code = err instanceof GrpcError ? err.codeName : 'Canceled';
      // Whoever answers next may be another program.
      if (err instanceof GrpcError && err.code === GrpcCode.Unavailable) this.#capabilities = undefined;
      throw err;
    } finally {
      metrics?.called(this.driver, rpc.path, code, migrated, (clock.monotonic() - from) / 1000);
    }
  }
}
