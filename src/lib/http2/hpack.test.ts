// HPACK: the examples of RFC 7541 (appendix C) with and without Huffman coding, evictions, what is not allowed, and our own
// blocks read back.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { fieldOf, HpackDecoder } from './hpack-decoder.ts';
import { encodeHeaders } from './hpack-encoder.ts';
import { decodeHuffman } from './huffman.ts';
import { ErrorCode, ProtocolError } from './protocol-error.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const decodeAll = (decoder: HpackDecoder, block: Buffer): readonly string[] => decoder.decode(block, 0, block.length);
const decoder = (): HpackDecoder => new HpackDecoder(65_536);

const GET = [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'www.example.com'];
const CUSTOM = [
  ':method',
  'GET',
  ':scheme',
  'https',
  ':path',
  '/index.html',
  ':authority',
  'www.example.com',
  'custom-key',
  'custom-value',
];
const DATE = 'Mon, 21 Oct 2013 20:13:21 GMT';
const LOCATION = ['location', 'https://www.example.com'];
const COOKIE = 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1';
const RESPONSES = [
  [':status', '302', 'cache-control', 'private', 'date', DATE, ...LOCATION],
  [':status', '307', 'cache-control', 'private', 'date', DATE, ...LOCATION],
  [
    ':status',
    '200',
    'cache-control',
    'private',
    'date',
    DATE.replace('13:21', '13:22'),
    ...LOCATION,
    'content-encoding',
    'gzip',
    'set-cookie',
    COOKIE,
  ],
];
/** The table of the examples with responses has 256 bytes. */
const TABLE_256 = '3fe101';

/** Name, blocks of one connection, what they mean. */
const EXAMPLES: readonly (readonly [string, readonly string[], readonly (readonly string[])[]])[] = [
  [
    'C.2.1 literal, kept',
    ['400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572'],
    [['custom-key', 'custom-header']],
  ],
  ['C.2.2 literal, not kept', ['040c 2f73 616d 706c 652f 7061 7468'], [[':path', '/sample/path']]],
  ['C.2.3 literal, never kept', ['1008 7061 7373 776f 7264 0673 6563 7265 74'], [['password', 'secret']]],
  ['C.2.4 indexed', ['82'], [[':method', 'GET']]],
  [
    'C.3 requests',
    [
      '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
      '8286 84be 5808 6e6f 2d63 6163 6865',
      '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
    ],
    [GET, [...GET, 'cache-control', 'no-cache'], CUSTOM],
  ],
  [
    'C.4 requests with Huffman coding',
    [
      '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
      '8286 84be 5886 a8eb 1064 9cbf',
      '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
    ],
    [GET, [...GET, 'cache-control', 'no-cache'], CUSTOM],
  ],
  [
    'C.5 responses, with evictions',
    [
      `${TABLE_256} 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
      '4803 3330 37c1 c0bf',
      '88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31',
    ],
    RESPONSES,
  ],
  [
    'C.6 responses with Huffman coding, with evictions',
    [
      `${TABLE_256} 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3`,
      '4883 640e ffc1 c0bf',
      '88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07',
    ],
    RESPONSES,
  ],
];

describe('header blocks of the RFC', () => {
  for (const [name, blocks, lists] of EXAMPLES)
    it(name, () => {
      const under = decoder();
      assert.deepEqual(
        blocks.map((block) => decodeAll(under, hex(block))),
        lists,
      );
    });
});

describe('the dynamic table', () => {
  const kept = (name: string, value: string): Buffer =>
    Buffer.concat([
      Buffer.from([0x40, name.length]),
      Buffer.from(name),
      Buffer.from([value.length]),
      Buffer.from(value),
    ]);
  const NEWEST = hex('be');

  it('forgets the oldest first, and everything where the peer makes it empty', () => {
    const under = decoder();
    decodeAll(under, Buffer.concat([hex('3f2b'), kept('a', '1'), kept('b', '2'), kept('c', '3')])); // 74 bytes: two entries
    assert.deepEqual(decodeAll(under, hex('bebf')), ['c', '3', 'b', '2']);
    assert.throws(() => decodeAll(under, hex('c0')), { code: ErrorCode.Compression });
    assert.deepEqual(decodeAll(under, hex('20')), []);
    assert.throws(() => decodeAll(under, NEWEST), { code: ErrorCode.Compression });
  });

  it('is empty after an entry that is larger than it', () => {
    const under = decoder();
    decodeAll(under, Buffer.concat([hex('3f09'), kept('a', '1')])); // 40 bytes
    assert.deepEqual(decodeAll(under, kept('name', 'too long for it')), ['name', 'too long for it']);
    assert.throws(() => decodeAll(under, NEWEST), { code: ErrorCode.Compression });
  });

  it('takes a name from an entry that the new one evicts', () => {
    const under = decoder();
    decodeAll(under, Buffer.concat([hex('3f09'), kept('abc', '1')]));
    assert.deepEqual(decodeAll(under, hex('7e0132')), ['abc', '2']);
    assert.deepEqual(decodeAll(under, NEWEST), ['abc', '2']);
  });
});

describe('header blocks that are not allowed', () => {
  const rows = [
    ['index zero', '80'],
    ['an index beyond both tables', 'be'],
    ['a number that does not end', 'ffffffffffffff'],
    ['a number that ends too early', 'ff'],
    ['a string longer than the block', '0005 6162'],
    ['a name without a value', '0001 61'],
    ['a table larger than ours', '3fe21f'],
    ['a change of the table after a field', '8220'],
    ['the end of a string within a Huffman code', '0001 6184 ffffffff'],
    ['more than a byte of padding', '0001 6182 1fff'],
    ['padding with zeros', '0001 6181 18'],
  ] as const;
  for (const [name, block] of rows)
    it(name, () =>
      assert.throws(
        () => decodeAll(decoder(), hex(block)),
        (err) => err instanceof ProtocolError && err.code === ErrorCode.Compression,
      ),
    );

  it('one that means more than it has bytes', () => {
    const under = new HpackDecoder(10_000);
    const value = 'v'.repeat(3000);
    decodeAll(under, Buffer.concat([hex('4001 61 7fb916'), Buffer.from(value)]));
    assert.equal(fieldOf(decodeAll(under, hex('be')), 'a'), value);
    assert.throws(() => decodeAll(under, hex('bebebebe')), { code: ErrorCode.EnhanceYourCalm });
  });
});

describe('Huffman coding', () => {
  /** From appendix B: byte, word, its length in bits. */
  const rows = [
    [0, 0x1ff8, 13],
    [1, 0x7fffd8, 23],
    [10, 0x3ffffffc, 30],
    [32, 0x14, 6],
    [48, 0x0, 5],
    [92, 0x7fff0, 19],
    [127, 0xffffffc, 28],
    [128, 0xfffe6, 20],
    [249, 0xffffffe, 28],
    [255, 0x3ffffee, 26],
  ] as const;
  for (const [byte, word, bits] of rows)
    it(`byte ${byte}`, () => {
      const text = word
        .toString(2)
        .padStart(bits, '0')
        .padEnd(Math.ceil(bits / 8) * 8, '1');
      const bytes = Buffer.from((text.match(/.{8}/g) ?? []).map((b) => Number.parseInt(b, 2)));
      assert.equal(decodeHuffman(bytes, 0, bytes.length), String.fromCharCode(byte));
    });

  it('never reads further than the string, whatever it is', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          assert.ok(decodeHuffman(Buffer.from(bytes), 0, bytes.length).length <= (bytes.length * 8) / 5);
        } catch (err) {
          assert.ok(err instanceof ProtocolError);
        }
      }),
    );
  });
});

describe('our header blocks', () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/);
  const value = fc.stringMatching(/^[ -~]{0,300}$/);
  it('mean what went into them', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 30 }), (fields) => {
        assert.deepEqual(decodeAll(decoder(), encodeHeaders(fields)), fields.flat());
      }),
    );
  });

  it('name the fields that everybody knows by their index, and mark secrets', () => {
    assert.equal(
      encodeHeaders([
        [':method', 'POST'],
        [':scheme', 'https'],
        [':path', '/'],
      ]).toString('hex'),
      '838784',
    );
    assert.equal(encodeHeaders([['authorization', 'B']]).toString('hex'), '1f080142');
    assert.equal(encodeHeaders([['Accept', '']]).toString('hex'), '0f0400');
  });

  it('have no characters that nobody takes', () => {
    for (const field of [
      ['a', 'b\r\nc: d'],
      ['a', '\u0000'],
      ['a', '漢'],
      ['a b', ''],
      ['', 'x'],
      ['ä', ''],
    ] as const)
      assert.throws(() => encodeHeaders([field]), /characters/);
  });
});

it('garbage is refused, never anything else', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 4 }), (blocks) => {
      const under = decoder();
      try {
        for (const block of blocks) decodeAll(under, Buffer.from(block));
      } catch (err) {
        assert.ok(err instanceof ProtocolError, String(err));
      }
    }),
    { numRuns: 1000 },
  );
});
