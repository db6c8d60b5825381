// One remote procedure: its path and the two message types. The generated service tables consist of these.
import type { MessageType } from '../proto/codec.ts';

export type Rpc<Req, Res> = {
  readonly path: string;
  readonly request: MessageType<Req>;
  readonly response: MessageType<Res>;
};
