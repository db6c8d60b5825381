// Huffman-coded strings of HPACK (RFC 7541, section 5.2 and appendix B), decoded four bits at a time. The code is canonical,
// so the lengths of its words say everything.
import { ErrorCode, ProtocolError } from './protocol-error.ts';

/** Length in bits of the word for each byte and, last, of the end of a string; in base 36. */
const LENGTHS =
  'dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca' +
  'd67777777777777777777777878djde6f56565666577666567655677777fbeds' +
  'kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn' +
  'qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq' +
  'u';
const END_OF_STRING = 256;
const NIBBLES = 16;
/** In a transition: the next state in the low byte, a byte that is complete plus one above it. */
const STATE_MASK = 0xff;
const INVALID = -1;
const MAX_PADDING_BITS = 7;

type Machine = {
  /** By state and four bits. */
  readonly transitions: Int32Array;
  /** States in which a string may end: nothing, or less than a byte of ones, has come of the next word. */
  readonly mayEnd: Uint8Array;
};

/** Made when the first such string comes. */
let made: Machine | undefined;

export function decodeHuffman(bytes: Buffer, from: number, to: number): string {
  const { transitions, mayEnd } = (made ??= machine());
  // The shortest word has five bits.
  const out = Buffer.allocUnsafe(Math.ceil(((to - from) * 8) / 5));
  let length = 0;
  let state = 0;
  for (let at = from; at < to; at++) {
    const byte = bytes[at] as number;
    for (let shift = 4; shift >= 0; shift -= 4) {
      const step = transitions[state * NIBBLES + ((byte >> shift) & 15)] as number;
      if (step === INVALID) throw broken();
      if (step > STATE_MASK) out[length++] = (step >> 8) - 1;
      state = step & STATE_MASK;
    }
  }
  if (mayEnd[state] === 0) throw broken();
  return out.toString('latin1', 0, length);
}

const broken = (): ProtocolError => new ProtocolError(ErrorCode.Compression, 'a Huffman-coded string is broken');

/** Inner nodes are states (there are as many as bytes); a leaf is the complement of its symbol. */
function machine(): Machine {
  const nodes = tree();
  const transitions = new Int32Array(nodes.length * NIBBLES);
  const mayEnd = new Uint8Array(nodes.length);
  for (let state = 0, bits = 0; bits <= MAX_PADDING_BITS; bits++) {
    mayEnd[state] = 1;
    state = nodes[state]?.[1] ?? 0;
  }
  for (let state = 0; state < nodes.length; state++)
    for (let nibble = 0; nibble < NIBBLES; nibble++) transitions[state * NIBBLES + nibble] = step(nodes, state, nibble);
  return { transitions, mayEnd };
}

type Node = [zero: number, one: number];

function step(nodes: readonly Node[], state: number, nibble: number): number {
  let at = state;
  let emitted = 0;
  for (let bit = 3; bit >= 0; bit--) {
    const next = (nodes[at] as Node)[((nibble >> bit) & 1) as 0 | 1];
    if (next >= 0) at = next;
    else if (~next === END_OF_STRING) return INVALID;
    else [at, emitted] = [0, ~next + 1];
  }
  return (emitted << 8) | at;
}

/** Words in the order of their length, then of their symbol, count upwards. */
function tree(): Node[] {
  const words = Array.from(LENGTHS, (digit, symbol) => ({ symbol, bits: Number.parseInt(digit, 36) }));
  words.sort((a, b) => a.bits - b.bits || a.symbol - b.symbol);
  const nodes: Node[] = [[0, 0]];
  let word = 0;
  let length = 0;
  for (const { symbol, bits } of words) {
    word *= 2 ** (bits - length);
    length = bits;
    place(nodes, word++, bits, symbol);
  }
  return nodes;
}

/** No inner node leads to the root, so 0 means that there is none yet. */
function place(nodes: Node[], word: number, bits: number, symbol: number): void {
  let at = 0;
  for (let bit = bits - 1; bit > 0; bit--) {
    const node = nodes[at] as Node;
    const side = ((word >>> bit) & 1) as 0 | 1;
    if (node[side] === 0) node[side] = nodes.push([0, 0]) - 1;
    at = node[side];
  }
  (nodes[at] as Node)[(word & 1) as 0 | 1] = ~symbol;
}
