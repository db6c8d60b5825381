// Frames as WebSocket clients send them.
import { frameOf } from './websocket-frames.ts';

export function masked(opcode: number, payload: Buffer, fin = true): Buffer {
  const head = frameOf(opcode, payload).subarray(0, payload.length < 126 ? 2 : payload.length < 65536 ? 4 : 10);
  const first = Buffer.from(head);
  first[0] = (fin ? 0x80 : 0) | opcode;
  first[1] = 0x80 | (first[1] ?? 0);
  const mask = Buffer.from([1, 2, 3, 4]);
  return Buffer.concat([first, mask, Buffer.from(payload.map((b, i) => b ^ (mask[i & 3] ?? 0)))]);
}
