// containerd's own event service on the CRI socket: tells which container something happened to.
import type { GrpcChannel } from '../lib/grpc/channel.ts';
import { decode } from '../lib/proto/codec.ts';
import { ContainerRef, Events, TaskExit, type Envelope } from './gen/containerd-events.ts';

export type ContainerdEvent = {
  readonly topic: string;
  readonly containerId: string;
};

/** The CRI keeps all it makes in this containerd namespace. */
const NAMESPACE = 'k8s.io';
const TOPICS = [
  '/tasks/start',
  '/tasks/exit',
  '/tasks/oom',
  '/tasks/paused',
  '/tasks/delete',
  '/containers/create',
  '/containers/update',
  '/containers/delete',
];
const FILTERS = TOPICS.map((topic) => `namespace==${NAMESPACE},topic==${JSON.stringify(topic)}`);

/** Resolves when containerd ends the stream; rejects with `unimplemented` where the runtime is not containerd. */
export function subscribeContainerd(
  channel: GrpcChannel,
  onEvent: (event: ContainerdEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  return channel.serverStream(Events.subscribe, { filters: FILTERS }, { signal }, (envelope) => {
    const event = readEnvelope(envelope);
    if (event !== undefined) onEvent(event);
  });
}

/** Undefined for what does not concern a container as a whole, such as the end of an exec. */
export function readEnvelope(envelope: Envelope): ContainerdEvent | undefined {
  const { topic, event } = envelope;
  if (envelope.namespace !== NAMESPACE || event === undefined) return undefined;
  const bytes = Buffer.from(event.value);
  if (topic === '/tasks/exit') {
    const exit = decode(TaskExit, bytes);
    return exit.id === '' || exit.id === exit.containerId ? { topic, containerId: exit.containerId } : undefined;
  }
  const { containerId } = decode(ContainerRef, bytes);
  return containerId === '' ? undefined : { topic, containerId };
}
