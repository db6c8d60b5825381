// Messages of the simulated channel are what the codec would make of them.
// runs: gate
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ImageService, RuntimeService } from '../../src/cri/gen/cri.ts';
import { decode, encode, type FieldSpec, type MessageSpec, type MessageType } from '../../src/lib/proto/codec.ts';
import { Random } from './engine/random.ts';
import { passOn } from './platform/messages.ts';

const TYPES = [RuntimeService, ImageService]
  .flatMap((service) => Object.values(service))
  .flatMap(({ request, response }): MessageType<unknown>[] => [request, response]);
const DEPTH = 4;

function scalar(type: string, random: Random): unknown {
  const number = random.pick([0, 1, 7, 127, 128, 300, 65_536, 2 ** 31 - 1]);
  switch (type) {
    case 'string':
      return random.pick(['', 'a', 'pod-1', 'ü', '\u{1f600}', '\ud800']);
    case 'bytes':
      return random.bytes(random.int(0, 3));
    case 'bool':
      return random.chance(0.5);
    case 'double':
      return number / 3;
    case 'fixed64':
      return BigInt(number);
    case 'bigint64':
      return BigInt(random.pick([-1, 1])) * BigInt(number);
    case 'int32':
    case 'int64':
      return random.pick([-1, 1]) * number;
    default:
      return number;
  }
}

function value({ type, repeated }: FieldSpec, random: Random, depth: number): unknown {
  if (type === 'map') return { a: 'b', [random.pick(['', 'c', 'd'])]: random.pick(['', 'e']) };
  const one = (): unknown => (typeof type === 'string' ? scalar(type, random) : message(type, random, depth - 1));
  return repeated === true ? Array.from({ length: random.int(0, 3) }, one) : one();
}

function message(spec: MessageSpec, random: Random, depth = DEPTH): Record<string, unknown> {
  const given = spec.fields().filter(({ type }) => random.chance(0.7) && (depth > 0 || typeof type === 'string'));
  return Object.fromEntries(given.map((field) => [field.name, value(field, random, depth)]));
}

describe('messages of the simulated channel', () => {
  it('are as the codec would have them, absent fields and zeros included', () => {
    const random = new Random(7);
    for (const type of TYPES)
      for (let i = 0; i < 20; i++) {
        const sent = message(type.spec, random);
        assert.deepStrictEqual(passOn(type, sent), decode(type, encode(type, sent)), type.spec.name);
      }
  });

  it("are the other side's own: nothing in them is shared", () => {
    const { request } = RuntimeService.createContainer;
    const envs = [{ key: 'A', value: Buffer.from('1') }];
    const sent = decode(request, encode(request, { config: { labels: { a: 'b' }, envs } } as never));
    const got = passOn(request, sent);
    assert.notEqual(got.config?.labels, sent.config?.labels);
    assert.notEqual(got.config?.envs[0]?.value, sent.config?.envs[0]?.value);
  });
});
