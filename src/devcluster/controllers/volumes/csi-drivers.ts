// The CSI drivers this cluster runs the controllers for: their Controller service over their own socket.
import type { Clock } from '../../../lib/clock.ts';
import {
  Controller,
  type ControllerExpandVolumeRequest,
  type ControllerExpandVolumeResponse,
  type ControllerPublishVolumeRequest,
  type ControllerPublishVolumeResponse,
  type ControllerUnpublishVolumeRequest,
  type CreateVolumeRequest,
  type CreateVolumeResponse,
  type DeleteVolumeRequest,
} from '../../../lib/csi-api/gen/csi.ts';
import { GrpcChannel } from '../../../lib/grpc/channel.ts';
import type { Rpc } from '../../../lib/grpc/rpc.ts';

export type CsiDriver = { readonly name: string; readonly endpoint: string };

const CALL_MS = 15_000;

export interface CsiController {
  create(request: CreateVolumeRequest): Promise<CreateVolumeResponse>;
  remove(request: DeleteVolumeRequest): Promise<unknown>;
  publish(request: ControllerPublishVolumeRequest): Promise<ControllerPublishVolumeResponse>;
  unpublish(request: ControllerUnpublishVolumeRequest): Promise<unknown>;
  expand(request: ControllerExpandVolumeRequest): Promise<ControllerExpandVolumeResponse>;
}

export class CsiDrivers {
  readonly #channels = new Map<string, GrpcChannel>();
  readonly #signal: AbortSignal;

  constructor(clock: Clock, drivers: readonly CsiDriver[], signal: AbortSignal) {
    this.#signal = signal;
    for (const { name, endpoint } of drivers)
      this.#channels.set(name, new GrpcChannel(clock, { target: { socketPath: endpoint } }));
  }

  /** Undefined for drivers that somebody else looks after. */
  get(name: string): CsiController | undefined {
    const channel = this.#channels.get(name);
    if (channel === undefined) return undefined;
    const call =
      <Req, Res>(rpc: Rpc<Req, Res>) =>
      (request: Req): Promise<Res> =>
        channel.unary(rpc, request, { signal: this.#signal, deadlineMs: CALL_MS });
    return {
      create: call(Controller.createVolume),
      remove: call(Controller.deleteVolume),
      publish: call(Controller.controllerPublishVolume),
      unpublish: call(Controller.controllerUnpublishVolume),
      expand: call(Controller.controllerExpandVolume),
    };
  }

  close(): void {
    for (const channel of this.#channels.values()) channel.close();
  }
}
