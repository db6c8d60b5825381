// A connection against a bus that is played by hand: what it answers when it is called itself.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, it } from 'node:test';
import { until } from '../../../test/harness/until.ts';
import { systemClock } from '../clock.ts';
import { KubeletError } from '../errors.ts';
import { Connection, textOf, type Answer } from './connection.ts';
import { encodeMessage, MessageStream, type Message } from './message.ts';
import type { Transport, TransportEvents } from './transport.ts';

const hasMachineId = ['/etc/machine-id', '/var/lib/dbus/machine-id'].some((path) => existsSync(path));
const PEER = 'org.freedesktop.DBus.Peer';

/** A bus that lets everybody in and gives the name `:1.5`. */
class Bus implements Transport {
  readonly passesDescriptors = false;
  readonly answers: Message[] = [];
  isClosed = false;
  isFull = false;
  readonly #stream = new MessageStream(() => undefined);
  #events: TransportEvents | undefined;
  #isIn = false;

  start(events: TransportEvents): void {
    this.#events = events;
  }

  write(data: Buffer): void {
    if (this.isFull) throw new KubeletError('unavailable', 'the other end does not read');
    if (this.#isIn) return this.#take(data);
    const text = data.toString('latin1');
    if (text.startsWith('\0AUTH')) queueMicrotask(() => this.#events?.data(Buffer.from('OK 1234\r\n'), []));
    else this.#isIn = text.startsWith('BEGIN');
  }

  closeDescriptor(): void {
    // There are none.
  }

  close(): void {
    this.isClosed = true;
  }

  call(serial: number, iface: string, member: string): void {
    const message: Message = {
      kind: 'call',
      serial,
      path: '/any/path',
      interface: iface,
      member,
      sender: ':1.9',
      body: [],
      descriptors: [],
    };
    this.#events?.data(encodeMessage(message), []);
  }

  #take(data: Buffer): void {
    for (const message of this.#stream.push(data, [])) {
      if (message.member !== 'Hello') this.answers.push(message);
      else {
        const hello = {
          kind: 'return',
          serial: 1,
          replySerial: message.serial,
          signature: 's',
          body: [':1.5'],
        } as const;
        queueMicrotask(() => this.#events?.data(encodeMessage({ ...hello, descriptors: [] }), []));
      }
    }
  }
}

async function opened(serve?: (call: Message) => Answer): Promise<Bus> {
  const bus = new Bus();
  const connection = new Connection(systemClock, bus, { uid: 0, ...(serve === undefined ? {} : { serve }) });
  await connection.open(new AbortController().signal);
  return bus;
}

describe('calls to us', () => {
  const known = (): Answer => ({ signature: 's', body: ['served'] });
  const rows: readonly (readonly [string, string, string, 'return' | 'error', RegExp])[] = [
    ['Ping', PEER, 'Ping', 'return', /^$/],
    hasMachineId
      ? ['GetMachineId', PEER, 'GetMachineId', 'return', /^[0-9a-f]{32}$/]
      : ['GetMachineId', PEER, 'GetMachineId', 'error', /no id/],
    ['another of the same interface', PEER, 'Other', 'error', /this is a client/],
    ['anything else', 'a.b', 'Ping', 'error', /this is a client/],
  ];
  for (const [name, iface, member, kind, text] of rows)
    it(`${name} is answered with ${kind}`, async () => {
      const bus = await opened();
      bus.call(7, iface, member);
      await until('the answer', () => bus.answers.length > 0, 30_000, 1);
      const [answer] = bus.answers;
      assert.deepEqual([answer?.kind, answer?.replySerial, answer?.destination], [kind, 7, ':1.9']);
      assert.match(textOf(answer?.body[0]), text);
    });

  it('one that serves is asked for others only', async () => {
    const bus = await opened(known);
    bus.call(1, PEER, 'Ping');
    bus.call(2, 'a.b', 'Get');
    await until('the answers', () => bus.answers.length === 2, 30_000, 1);
    assert.deepEqual(
      bus.answers.map(({ replySerial, body }) => [replySerial, body]),
      [
        [1, []],
        [2, ['served']],
      ],
    );
  });

  it('a caller that reads no answers loses the connection, and nobody else anything', async () => {
    const bus = await opened(known);
    bus.isFull = true;
    bus.call(1, PEER, 'Ping');
    await until('the end', () => bus.isClosed, 30_000, 1);
  });
});
