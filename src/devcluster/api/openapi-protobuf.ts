// Protobuf encoding of strings and nested messages, which is all the OpenAPI document needs.

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** A length-delimited field. */
export function field(number: number, ...contents: readonly Uint8Array[]): Buffer {
  const size = contents.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([varint((number << 3) | 2), varint(size), ...contents]);
}

export const text = (number: number, value: string): Buffer => field(number, Buffer.from(value));
