// What a connection needs from a socket.

export interface TransportEvents {
  data(chunk: Buffer, descriptors: readonly number[]): void;
  /** Once. No data afterwards. */
  closed(why: Error): void;
}

export interface Transport {
  readonly passesDescriptors: boolean;
  /** Begins to hand over what arrives. */
  start(events: TransportEvents): void;
  /** Throws `unavailable` when too much waits already: somebody at the other end has stopped reading. */
  write(data: Buffer, descriptors: readonly number[]): void;
  /** For a file that came with a message nobody wants. */
  closeDescriptor(fd: number): void;
  /** Idempotent; `closed` is told if it was not yet. */
  close(): void;
}
