// DNS on the wire, as far as a server of names and addresses needs it. Pure.

export const TYPES = { A: 1, CNAME: 5, AAAA: 28, SRV: 33 } as const;
export const CODES = { ok: 0, failed: 2, noName: 3 } as const;

export type Question = { readonly name: string; readonly type: number; readonly end: number };
export type Answer =
  | { readonly type: 'A'; readonly address: string }
  | { readonly type: 'CNAME'; readonly target: string }
  | { readonly type: 'SRV'; readonly port: number; readonly target: string };

const HEADER = 12;
const SECONDS = 5;
const MAX_DATAGRAM = 512;

/** The one question of a query; undefined for anything else. */
export function questionOf(query: Buffer): Question | undefined {
  if (query.length < HEADER + 5 || (query[2] ?? 0) >> 3 !== 0 || query.readUInt16BE(4) !== 1) return undefined;
  const labels: string[] = [];
  let at = HEADER;
  for (;;) {
    const length = query[at];
    if (length === undefined || length > 63) return undefined;
    at++;
    if (length === 0) break;
    labels.push(query.toString('latin1', at, at + length));
    at += length;
  }
  if (at + 4 > query.length) return undefined;
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at), end: at + 4 };
}

const encodedName = (name: string): Buffer =>
  Buffer.concat([
    ...name.split('.').flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]),
    Buffer.from([0]),
  ]);

function dataOf(answer: Answer): Buffer {
  switch (answer.type) {
    case 'A':
      return Buffer.from(answer.address.split('.').map(Number));
    case 'CNAME':
      return encodedName(answer.target);
    case 'SRV': {
      const fixed = Buffer.from([0, 0, 0, 100, answer.port >> 8, answer.port & 255]);
      return Buffer.concat([fixed, encodedName(answer.target)]);
    }
    default:
      return answer satisfies never;
  }
}

function record(answer: Answer): Buffer {
  const data = dataOf(answer);
  const head = Buffer.alloc(12);
  // The name is that of the question.
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(TYPES[answer.type], 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(SECONDS, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

/** The answer to `query`. In a datagram only what fits: a client that is told so asks again over TCP. */
export function encodeAnswer(
  query: Buffer,
  { end }: Question,
  code: number,
  answers: readonly Answer[],
  isDatagram: boolean,
): Buffer {
  const question = query.subarray(HEADER, end);
  const records = answers.map(record);
  const room = isDatagram ? MAX_DATAGRAM - HEADER - question.length : Infinity;
  let used = 0;
  const fitting = records.filter((bytes) => (used += bytes.length) <= room);
  const head = Buffer.alloc(HEADER);
  query.copy(head, 0, 0, 2);
  const truncated = fitting.length < records.length ? 0x02 : 0;
  head[2] = 0x84 | truncated | ((query[2] ?? 0) & 0x01);
  head[3] = 0x80 | code;
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(fitting.length, 6);
  return Buffer.concat([head, question, ...fitting]);
}
