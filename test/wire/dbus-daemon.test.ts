// Values of any type through a real dbus-daemon, which ends connections that marshal wrongly.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Connection } from '../../src/lib/dbus/connection.ts';
import { parseSignature, type DBusType } from '../../src/lib/dbus/signature.ts';
import { Variant, type DBusValue } from '../../src/lib/dbus/values.ts';
import { MessageBus, noMessageBus } from '../harness/message-bus.ts';
import { cases, Dice, SEED } from './random.ts';

const BASIC = 'ybnqiuxtdsog'.split('');
const KEYS = 'snquiyxtbd'.split('');
const MAX_DEPTH = 4;
const MAX_SIGNATURE = 200;

function signature(dice: Dice, depth = 0): string {
  const inner = (): string => signature(dice, depth + 1);
  switch (depth === MAX_DEPTH ? 0 : dice.below(8)) {
    case 4:
      return 'v';
    case 5:
      return `a${inner()}`;
    case 6:
      return `(${inner()}${dice.list(2, inner).join('')})`;
    case 7:
      return `a{${dice.one(KEYS)}${inner()}}`;
    default:
      return dice.one(BASIC);
  }
}

const BASIC_VALUES: Readonly<Record<string, (dice: Dice) => DBusValue>> = {
  y: (dice) => dice.below(256),
  b: (dice) => dice.next() < 0.5,
  n: (dice) => dice.one([0, -1, 2 ** 15 - 1, -(2 ** 15)]),
  q: (dice) => dice.one([0, 1, 2 ** 16 - 1]),
  i: (dice) => dice.one([0, -1, 2 ** 31 - 1, -(2 ** 31)]),
  u: (dice) => dice.one([0, 1, 2 ** 32 - 1]),
  x: (dice) => dice.one([0n, -1n, 2n ** 63n - 1n, -(2n ** 63n)]),
  t: (dice) => dice.one([0n, 2n ** 64n - 1n]),
  d: (dice) => dice.one([0, -0.5, 1e300, Infinity]),
  s: (dice) => dice.one(['', 'a', 'ü 日本 😀', 'x'.repeat(300)]),
  o: (dice) => dice.one(['/', '/a', '/org/freedesktop/systemd1/unit/a_2eb']),
  g: (dice) => dice.one(['', 's', 'a{sv}', '(iu)']),
};

function value(dice: Dice, type: DBusType, depth = 0): DBusValue {
  switch (type.code) {
    case 'a':
      if (type.of.code === 'y') return new Uint8Array(dice.bytes(5));
      return dice.list(3, () => value(dice, type.of, depth + 1));
    case 'r':
      return type.fields.map((field) => value(dice, field, depth + 1));
    case 'v': {
      const inner = depth < MAX_DEPTH ? signature(dice, depth + 1) : 's';
      return new Variant(inner, value(dice, parseSignature(inner)[0] as DBusType, depth + 1));
    }
    default:
      return (BASIC_VALUES[type.code] ?? (() => 0))(dice);
  }
}

describe(`values through dbus-daemon, SEED=${SEED}`, { skip: noMessageBus }, () => {
  const daemon = new MessageBus();
  const signal = new AbortController().signal;
  let peer: Connection;
  let client: Connection;
  before(async () => {
    await daemon.start();
    peer = await daemon.serve('org.example.Echo', (call) => ({ signature: call.signature ?? '', body: call.body }));
    client = await daemon.serve('org.example.Client', () => ({}));
  });
  after(() => daemon.close());

  it('come back as they were', async () => {
    const dice = new Dice();
    const echo = { destination: 'org.example.Echo', path: '/', interface: 'org.example.Echo', member: 'Echo' };
    for (let i = cases(300); i > 0; i--) {
      const text = `${signature(dice)}${dice.list(3, () => signature(dice)).join('')}`;
      if (text.length > MAX_SIGNATURE) continue;
      const body = parseSignature(text).map((type) => value(dice, type));
      const reply = await client.call({ ...echo, signature: text, body }, 30_000, signal);
      assert.deepEqual(reply.body, body, text);
    }
    assert.ok(!client.isLost && !peer.isLost);
  });
});
