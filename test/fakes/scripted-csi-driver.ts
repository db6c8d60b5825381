// A CSI driver of a few lines: answers every node call, makes and removes the directories a driver is to make, keeps a list
// of its calls, and misbehaves on demand. Needs no root, unless it is given devices.
import { execFile } from 'node:child_process';
import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { readable } from '../../src/devcluster/csi-hostpath/call-log.ts';
import { Node, NodeRpcType, VolumeUsageUnit } from '../../src/lib/csi-api/gen/csi.ts';
import { GrpcServer } from '../../src/lib/grpc/server.ts';
import type { Rpc } from '../../src/lib/grpc/rpc.ts';

export type DriverCall = { readonly call: string; readonly request: Record<string, unknown> };
type NodeCall = keyof typeof Node;
const run = promisify(execFile);

export class ScriptedCsiDriver {
  readonly calls: DriverCall[] = [];
  capabilities: readonly (keyof typeof NodeRpcType)[] = [
    'STAGE_UNSTAGE_VOLUME',
    'GET_VOLUME_STATS',
    'SINGLE_NODE_MULTI_WRITER',
    'EXPAND_VOLUME',
  ];
  /** By the id of a volume: what is published of it. */
  readonly devices = new Map<string, string>();
  /** What it says about the health of its volumes. */
  condition: { readonly abnormal: boolean; readonly message: string } | undefined;
  info = { nodeId: 'n1', maxVolumesPerNode: 100 };
  /** Runs before a call has any effect; a throw is the answer. */
  before: (call: NodeCall, request: Record<string, unknown>, signal: AbortSignal) => Promise<void> | void = () =>
    undefined;
  #server = new GrpcServer();
  readonly #bound = new Set<string>();

  async listen(endpoint: string): Promise<void> {
    this.#server = new GrpcServer();
    this.#add(Node.nodeGetInfo, 'nodeGetInfo', () => this.info);
    this.#add(Node.nodeGetCapabilities, 'nodeGetCapabilities', () => ({
      capabilities: this.capabilities.map((name) => ({ rpc: { type: NodeRpcType[name] } })),
    }));
    this.#add(Node.nodeStageVolume, 'nodeStageVolume', () => ({}));
    this.#add(Node.nodeUnstageVolume, 'nodeUnstageVolume', () => ({}));
    this.#add(Node.nodePublishVolume, 'nodePublishVolume', async ({ volumeId, targetPath }) => {
      const device = this.devices.get(volumeId);
      if (device === undefined) await mkdir(targetPath, { recursive: true });
      else if (!this.#bound.has(targetPath)) await this.#bind(device, targetPath);
      return {};
    });
    this.#add(Node.nodeUnpublishVolume, 'nodeUnpublishVolume', async ({ targetPath }) => {
      if (this.#bound.delete(targetPath)) {
        await run('umount', [targetPath]);
        await rm(targetPath);
      } else await rmdir(targetPath).catch(() => undefined);
      return {};
    });
    this.#add(Node.nodeExpandVolume, 'nodeExpandVolume', () => ({ capacityBytes: 0 }));
    this.#add(Node.nodeGetVolumeStats, 'nodeGetVolumeStats', () => ({
      usage: [
        { available: 60, total: 100, used: 40, unit: VolumeUsageUnit.BYTES },
        { available: 9, total: 10, used: 1, unit: VolumeUsageUnit.INODES },
      ],
      ...(this.condition === undefined ? {} : { volumeCondition: this.condition }),
    }));
    await this.#server.listen(endpoint);
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  /** The calls so far, without questions for capabilities, and an empty list from now on. */
  take(): DriverCall[] {
    return this.calls.splice(0).filter(({ call }) => call !== 'NodeGetCapabilities');
  }

  async #bind(device: string, target: string): Promise<void> {
    await writeFile(target, '');
    await run('mount', ['--bind', device, target]);
    this.#bound.add(target);
  }

  #add<Req, Res>(rpc: Rpc<Req, Res>, name: NodeCall, answer: (request: Req) => Res | Promise<Res>): void {
    this.#server.unary(rpc, async (request, signal) => {
      const shown = readable(rpc.request.spec, request);
      this.calls.push({ call: rpc.path.slice(rpc.path.lastIndexOf('/') + 1), request: shown });
      await this.before(name, shown, signal);
      return answer(request);
    });
  }
}
