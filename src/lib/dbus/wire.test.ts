// Byte by byte, then whatever fast-check thinks of: signatures, marshalling, messages, addresses, authentication.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { isFault } from '../errors.ts';
import { socketPaths } from './address.ts';
import { AuthClient } from './auth.ts';
import { busError } from './bus-error.ts';
import { marshal } from './marshal.ts';
import { matches, ruleText } from './match-rule.ts';
import { encodeMessage, messageLength, MessageStream, type Message } from './message.ts';
import { parseSignature } from './signature.ts';
import { unmarshal } from './unmarshal.ts';
import { Variant, type DBusValue } from './values.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const invalid = (err: unknown): boolean => isFault(err, 'invalid');

/** [signature, values, little-endian bytes] */
const VALUES: readonly [string, DBusValue[], string][] = [
  ['y', [255], 'ff'],
  ['yu', [1, 2], '01 000000 02000000'],
  ['b', [true], '01000000'],
  ['n', [-2], 'feff'],
  ['q', [65535], 'ffff'],
  ['i', [-1], 'ffffffff'],
  ['u', [4294967295], 'ffffffff'],
  ['h', [0], '00000000'],
  ['x', [-1n], 'ffffffffffffffff'],
  ['t', [18446744073709551615n], 'ffffffffffffffff'],
  ['yt', [1, 2n], '01 00000000000000 0200000000000000'],
  ['d', [1.5], '000000000000f83f'],
  ['s', ['foo'], '03000000 666f6f 00'],
  ['s', [''], '00000000 00'],
  ['s', ['é'], '02000000 c3a9 00'],
  ['o', ['/a/b'], '04000000 2f612f62 00'],
  ['g', ['a(sv)'], '05 6128737629 00'],
  ['au', [[1, 2]], '08000000 01000000 02000000'],
  // An empty array still has the padding of its items.
  ['at', [[]], '00000000 00000000'],
  ['ay', [Uint8Array.of(1, 2, 3)], '03000000 010203'],
  ['(yu)', [[1, 2]], '01 000000 02000000'],
  ['v', [new Variant('s', 'a')], '01 73 00 00 01000000 61 00'],
  ['a{sv}', [[['k', new Variant('b', true)]]], '10000000 00000000 01000000 6b00 01 62 00 000000 01000000'],
  ['aas', [[['a'], []]], '10000000 06000000 01000000 6100 0000 00000000'],
];

describe('values', () => {
  for (const [signature, values, bytes] of VALUES)
    it(`${signature} ${bytes}`, () => {
      assert.deepEqual(marshal(signature, values), hex(bytes));
      assert.deepEqual(unmarshal(signature, hex(bytes), true), values);
    });

  it('big-endian is read too', () => {
    const bytes = hex('01 000000 00000002 fffe 0000 00000001 61 00');
    assert.deepEqual(unmarshal('yuns', bytes, false), [1, 2, -2, 'a']);
    assert.deepEqual(
      unmarshal('xtdqi', hex('ffffffffffffffff 0000000000000002 3ff8000000000000 0003 0000 fffffffe'), false),
      [-1n, 2n, 1.5, 3, -2],
    );
  });

  /** [what, signature, bytes] */
  const REFUSED: readonly [string, string, string][] = [
    ['ends in a number', 'u', '0000'],
    ['boolean 2', 'b', '02000000'],
    ['padding with content', 'yu', '01 010000 02000000'],
    ['a string without its NUL', 's', '01000000 61 62'],
    ['a string with NUL inside', 's', '02000000 6100 00'],
    ['a string that is not UTF-8', 's', '01000000 ff 00'],
    ['a string longer than the message', 's', 'ffffffff 61'],
    ['a relative object path', 'o', '01000000 61 00'],
    ['an array longer than the message', 'au', '10000000 01000000'],
    ['an array that ends inside an item', 'au', '06000000 01000000 02000000'],
    ['an array beyond 64 MiB', 'ay', '01000004'],
    ['a variant of two types', 'v', '02 7575 00 00000000 01000000 01000000'],
    ['a variant of no type', 'v', '00 00'],
    ['more than the signature says', 'y', '0101'],
  ];
  for (const [what, signature, bytes] of REFUSED)
    it(`refuses ${what}`, () => assert.throws(() => unmarshal(signature, hex(bytes), true), invalid));

  it('refuses variants without end', () => {
    const nested = Buffer.concat([...Array.from({ length: 100 }, () => hex('01 76 00')), hex('01 79 00 01')]);
    assert.throws(() => unmarshal('v', nested, true), invalid);
  });

  const MISFITS: readonly [string, DBusValue][] = [
    ['y', 256],
    ['y', 1.5],
    ['q', -1],
    ['i', 2 ** 31],
    ['u', 5n],
    ['t', 5],
    ['t', -1n],
    ['t', 2n ** 64n],
    ['b', 1],
    ['s', 'a\0b'],
    ['s', '\ud800'],
    ['s', 5],
    ['o', 'a'],
    ['g', '('],
    ['as', 'a'],
    ['(ss)', ['a']],
    ['v', 'a'],
    ['d', 'a'],
  ];
  for (const [signature, value] of MISFITS)
    it(`${signature} does not take ${inspect(value)}`, () => assert.throws(() => marshal(signature, [value]), invalid));
});

describe('signatures', () => {
  for (const text of ['', 'a{sv}', '(i(ii))', 'aaaas', 'ssa(sv)a(sa(sv))', 'a'.repeat(32) + 'y'])
    it(`takes ${text}`, () => void parseSignature(text));
  for (const text of [
    'a',
    '(',
    '()',
    ')',
    'a{vs}',
    'a{s}',
    'a{sss}',
    '{ss}',
    'z',
    'a'.repeat(33) + 'y',
    'y'.repeat(256),
    '('.repeat(33) + 'y' + ')'.repeat(33),
  ])
    it(`refuses ${text.slice(0, 40)}`, () => assert.throws(() => parseSignature(text), invalid));
});

// ---- any value of any type comes back ----

const basic: readonly [string, fc.Arbitrary<DBusValue>][] = [
  ['y', fc.integer({ min: 0, max: 255 })],
  ['b', fc.boolean()],
  ['n', fc.integer({ min: -32768, max: 32767 })],
  ['q', fc.integer({ min: 0, max: 65535 })],
  ['i', fc.integer()],
  ['u', fc.integer({ min: 0, max: 2 ** 32 - 1 })],
  ['x', fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })],
  ['t', fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })],
  ['d', fc.double({ noNaN: true })],
  ['s', fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\0'))],
  ['o', fc.array(fc.stringMatching(/^[A-Za-z0-9_]{1,8}$/)).map((parts) => `/${parts.join('/')}`)],
  ['g', fc.constantFrom('', 's', 'a{sv}')],
];
type Typed = { readonly signature: string; readonly value: DBusValue };
const typed: fc.Arbitrary<Typed> = fc.letrec<{ any: Typed }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 4 },
    ...basic.map(([signature, values]) => values.map((value) => ({ signature, value }))),
    fc.array(tie('any'), { minLength: 1, maxLength: 4 }).map((fields) => ({
      signature: `(${fields.map((f) => f.signature).join('')})`,
      value: fields.map((f) => f.value),
    })),
    tie('any').map(({ signature, value }) => ({ signature: 'v', value: new Variant(signature, value) })),
    fc.tuple(tie('any'), fc.integer({ min: 0, max: 3 })).map(([{ signature, value }, count]) => ({
      signature: `a${signature}`,
      value: signature === 'y' ? new Uint8Array(count) : Array.from({ length: count }, () => value),
    })),
    fc.tuple(fc.constantFrom(...basic), tie('any')).chain(([[key, keys], { signature, value }]) =>
      fc.array(keys, { maxLength: 3 }).map((all) => ({
        signature: `a{${key}${signature}}`,
        value: all.map((one) => [one, value]),
      })),
    ),
  ),
})).any;

describe('round trips', () => {
  it('of any value', () =>
    fc.assert(
      fc.property(fc.array(typed, { maxLength: 4 }), (all) => {
        const signature = all.map((one) => one.signature).join('');
        fc.pre(signature.length < 256);
        const values = all.map((one) => one.value);
        assert.deepEqual(unmarshal(signature, marshal(signature, values), true), values);
      }),
    ));

  it('of messages, however the stream is cut', () =>
    fc.assert(
      fc.property(
        fc.array(typed, { maxLength: 3 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
        (all, cuts) => {
          const signature = all.map((one) => one.signature).join('');
          fc.pre(signature.length < 256);
          const message: Message = { ...CALL, signature, body: all.map((one) => one.value) };
          const bytes = Buffer.concat([encodeMessage(message), encodeMessage(SIGNAL)]);
          const stream = new MessageStream(() => assert.fail('no descriptor came'));
          const got: Message[] = [];
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const size = cuts[i % cuts.length] ?? 1;
            got.push(...stream.push(bytes.subarray(at, at + size), []));
            at += size;
          }
          assert.deepEqual(got, [
            { noReply: false, ...message },
            { noReply: false, ...SIGNAL },
          ]);
        },
      ),
    ));

  it('random bytes are refused or waited for, never anything else', () =>
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 200 }), (bytes) => {
        bytes[0] = 0x6c;
        bytes[3] = 1;
        try {
          new MessageStream(() => undefined).push(Buffer.from(bytes), []);
        } catch (err) {
          assert.ok(isFault(err, 'invalid'), String(err));
        }
      }),
      { numRuns: 2000 },
    ));
});

const CALL: Message = {
  kind: 'call',
  serial: 7,
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
  member: 'Hello',
  destination: 'org.freedesktop.DBus',
  signature: '',
  body: [],
  descriptors: [],
};
const SIGNAL: Message = {
  kind: 'signal',
  serial: 8,
  path: '/p',
  interface: 'a.B',
  member: 'C',
  sender: ':1.5',
  signature: 's',
  body: ['x'],
  descriptors: [],
};

describe('messages', () => {
  it('Hello is what every client sends', () => {
    const wanted = [
      '6c 01 00 01 00000000 01000000 6d000000',
      `01 01 6f 00 15000000 ${Buffer.from('/org/freedesktop/DBus').toString('hex')} 00 0000`,
      `02 01 73 00 14000000 ${Buffer.from('org.freedesktop.DBus').toString('hex')} 00 000000`,
      `03 01 73 00 05000000 ${Buffer.from('Hello').toString('hex')} 00 0000`,
      `06 01 73 00 14000000 ${Buffer.from('org.freedesktop.DBus').toString('hex')} 00 000000`,
    ].join('');
    const { signature: _, ...hello } = CALL;
    assert.deepEqual(encodeMessage({ ...hello, serial: 1 }), hex(wanted));
  });

  it('descriptors go to the message that names them', () => {
    const closed: number[] = [];
    const stream = new MessageStream((fd) => closed.push(fd));
    const reply = { ...CALL, kind: 'return' as const, replySerial: 3, signature: 'h', body: [0], descriptors: [40] };
    const [got] = stream.push(encodeMessage(reply), [77, 78]);
    assert.deepEqual(got?.descriptors, [77]);
    stream.end();
    assert.deepEqual(closed, [78]);
    assert.throws(() => stream.push(encodeMessage(reply), []), /without its descriptors/);
  });

  it('descriptors of a message nobody understands are closed', () => {
    const closed: number[] = [];
    const bytes = encodeMessage({ ...CALL, descriptors: [1] });
    bytes[1] = 9;
    assert.deepEqual(new MessageStream((fd) => closed.push(fd)).push(bytes, [5]), []);
    assert.deepEqual(closed, [5]);
  });

  const changed = (at: number, value: number): Buffer => {
    const bytes = Buffer.from(encodeMessage(CALL));
    bytes[at] = value;
    return bytes;
  };
  for (const [what, bytes] of [
    ['another byte order', changed(0, 0x20)],
    ['another version', changed(3, 2)],
    ['a body of 2 GiB', changed(7, 0x80)],
    ['serial 0', changed(8, 0)],
    ['a field of the wrong type', changed(18, 0x73)],
  ] as const)
    it(`refuses ${what}`, () => assert.throws(() => new MessageStream(() => undefined).push(bytes, []), invalid));

  for (const wrong of [{ path: 'x' }, { member: 'a.b' }, { destination: 'nodots' }, { interface: 'one' }])
    it(`does not send ${JSON.stringify(wrong)}`, () =>
      assert.throws(() => encodeMessage({ ...CALL, ...wrong }), invalid));

  it('says how long a message is from its first 16 bytes', () => {
    const bytes = encodeMessage(CALL);
    assert.equal(messageLength(bytes.subarray(0, 15)), undefined);
    assert.equal(messageLength(bytes.subarray(0, 16)), bytes.length);
  });
});

describe('authentication', () => {
  it('EXTERNAL, then messages', () => {
    const auth = new AuthClient(1000, false);
    assert.equal(auth.greeting(), '\0AUTH EXTERNAL 31303030\r\n');
    assert.deepEqual(auth.receive(Buffer.from('OK 12')), { send: '' });
    assert.deepEqual(auth.receive(Buffer.from('34\r\nx')), { send: 'BEGIN\r\n', rest: Buffer.from('x') });
  });
  it('with descriptors', () => {
    const auth = new AuthClient(0, true);
    assert.deepEqual(auth.receive(Buffer.from('OK 1\r\n')), { send: 'NEGOTIATE_UNIX_FD\r\n' });
    assert.deepEqual(auth.receive(Buffer.from('AGREE_UNIX_FD\r\n')), { send: 'BEGIN\r\n', rest: Buffer.alloc(0) });
  });
  for (const [what, lines, kind] of [
    ['refused', ['REJECTED EXTERNAL\r\n'], 'denied'],
    ['no descriptors', ['OK 1\r\n', 'ERROR\r\n'], 'unimplemented'],
    ['an endless line', ['x'.repeat(20_000)], 'invalid'],
  ] as const)
    it(what, () => {
      const auth = new AuthClient(0, true);
      assert.throws(
        () => lines.forEach((line) => auth.receive(Buffer.from(line))),
        (err) => isFault(err, kind),
      );
    });
});

it('addresses', () => {
  const table: readonly [string, string[]][] = [
    ['unix:path=/run/dbus/system_bus_socket', ['/run/dbus/system_bus_socket']],
    ['unix:abstract=/tmp/x,guid=1', ['\0/tmp/x']],
    ['tcp:host=a;unix:path=/a%20b%c3%a9', ['/a bé']],
    ['unix:path=/a;unix:path=/b', ['/a', '/b']],
  ];
  for (const [address, paths] of table) assert.deepEqual(socketPaths(address), paths);
  for (const address of ['', 'tcp:host=a', 'unix:tmpdir=/x', 'nonsense'])
    assert.throws(() => socketPaths(address), invalid);
});

it('match rules, and signals of somebody else', () => {
  const rule = { sender: 'org.x.Y', path: '/p', interface: 'a.B', member: 'C' };
  assert.equal(ruleText(rule), "type='signal',sender='org.x.Y',path='/p',interface='a.B',member='C'");
  assert.throws(() => ruleText({ ...rule, member: "x'" }), invalid);
  assert.equal(matches(rule, SIGNAL, ':1.5'), true);
  for (const other of [
    { sender: ':1.6' },
    { path: '/q' },
    { interface: 'a.D' },
    { member: 'D' },
    { kind: 'call' as const },
  ])
    assert.equal(matches(rule, { ...SIGNAL, ...other }, ':1.5'), false);
  assert.equal(matches(rule, SIGNAL, undefined), false, 'nobody has the name');
  const open = { ...rule, fromAnybody: true } as const;
  assert.equal(ruleText(open), "type='signal',path='/p',interface='a.B',member='C'");
  assert.equal(matches(open, { ...SIGNAL, sender: ':1.6' }, ':1.5'), true);
  assert.equal(matches(open, { ...SIGNAL, member: 'D' }, ':1.5'), false);
  assert.equal(matches({ ...rule, arg0: 'x' }, SIGNAL, ':1.5'), true);
  assert.equal(matches({ ...rule, arg0: 'y' }, SIGNAL, ':1.5'), false);
});

it('errors have kinds', () => {
  const error = (name: string, body: DBusValue[] = []) =>
    busError('StopUnit', { ...SIGNAL, kind: 'error', error: name, body });
  for (const [name, kind] of [
    ['org.freedesktop.systemd1.NoSuchUnit', 'notFound'],
    ['org.freedesktop.systemd1.UnitExists', 'exists'],
    ['org.freedesktop.DBus.Error.AccessDenied', 'denied'],
    ['org.freedesktop.DBus.Error.ServiceUnknown', 'unavailable'],
    ['anything.Else', 'unavailable'],
  ] as const)
    assert.equal(error(name).kind, kind);
  assert.equal(error('a.B', ['Unit x not loaded.']).message, 'StopUnit: Unit x not loaded.');
  assert.deepEqual(error('a.B').detail, { dbusError: 'a.B' });
});
