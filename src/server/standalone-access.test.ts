// Identification of local root: rows of the kernel's tables, and connections within this machine.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { localRoot, type ConnectionEnds } from './standalone-access.ts';
import { findListed, tcpPeer, type ClientSocket } from './tcp-peer.ts';

const signal = new AbortController().signal;
const ENDS: ConnectionEnds = {
  remoteAddress: '127.0.0.1',
  remotePort: 0xd431,
  localAddress: '127.0.0.1',
  localPort: 10250,
};
const MAPPED: ConnectionEnds = { ...ENDS, remoteAddress: '::ffff:127.0.0.1', localAddress: '::ffff:127.0.0.1' };
const IPV6: ConnectionEnds = { ...ENDS, remoteAddress: '::1', localAddress: '::1' };

const CLIENT = '0100007F:D431';
const SERVER = '0100007F:280A';
const WITHIN_IPV6 = '0000000000000000FFFF0000';
const LOOPBACK_IPV6 = '00000000000000000000000001000000';

type RowFields = { from?: string; to?: string; state?: string; uid?: number; inode?: number };
const row = ({ from = CLIENT, to = SERVER, state = '01', uid = 0, inode = 7 }: RowFields): string =>
  `   0: ${from} ${to} ${state} 00000000:00000000 00:00000000 00000000  ${uid}        0 ${inode} 1`;
const HEAD = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode';
/** A connection of root from the same port to another server, and the server's own end of the connection. */
const OTHERS = [row({ to: '0100007F:1F90', inode: 1 }), row({ from: SERVER, to: CLIENT, inode: 2 })];

describe('the row of the client in the tables of the kernel', () => {
  const table: readonly (readonly [string, readonly string[], ConnectionEnds, ClientSocket | undefined])[] = [
    ['none', [], ENDS, undefined],
    ['one', [row({ uid: 1000 })], ENDS, { uid: 1000, inode: '7' }],
    ['of a socket for both IP versions', [row({})], MAPPED, { uid: 0, inode: '7' }],
    [
      'of IPv4 within IPv6',
      [row({ from: `${WITHIN_IPV6}${CLIENT}`, to: `${WITHIN_IPV6}${SERVER}` })],
      ENDS,
      { uid: 0, inode: '7' },
    ],
    ['of IPv6', [row({ from: `${LOOPBACK_IPV6}:D431`, to: `${LOOPBACK_IPV6}:280A` })], IPV6, { uid: 0, inode: '7' }],
    ['listed twice', [row({}), row({})], ENDS, { uid: 0, inode: '7' }],
    ['beside an older one', [row({ state: '06', inode: 0 }), row({ uid: 5 })], ENDS, { uid: 5, inode: '7' }],
    ['of the same port and another address of the server', [row({ to: '0200007F:280A' })], ENDS, undefined],
    ['of the same port and another address of the client', [row({ from: '0200007F:D431' })], ENDS, undefined],
    ['two', [row({}), row({ inode: 8 })], ENDS, undefined],
    ['two of different users', [row({ uid: 1000 }), row({})], ENDS, undefined],
    ['without an inode', [row({ inode: 0 })], ENDS, undefined],
    ...['02', '04', '05', '06', '08', '0A'].map(
      (state) => [`in state ${state}`, [row({ state })], ENDS, undefined] as const,
    ),
  ];
  for (const [name, rows, ends, want] of table)
    it(name, async () => {
      const read = async (): Promise<string[]> => [[HEAD, ...OTHERS, ...rows].join('\n'), HEAD];
      assert.deepEqual(await findListed(read, ends), want);
    });

  it('is looked for again when a table lacks it, three times at most', async () => {
    const tables = ['', '', row({})];
    let reads = 0;
    assert.deepEqual(await findListed(async () => [tables[reads++] ?? ''], ENDS), { uid: 0, inode: '7' });
    assert.equal(reads, 3);
    reads = 0;
    assert.equal(await findListed(async () => [OTHERS[reads++] ?? ''], ENDS), undefined);
    assert.equal(reads, 3);
    reads = 0;
    const closed = async (): Promise<string[]> => {
      reads++;
      return [row({ inode: 0 })];
    };
    assert.equal(await findListed(closed, ENDS), undefined);
    assert.equal(reads, 1, 'a listed connection that its process has closed is not looked for again');
  });
});

describe('local root', () => {
  const socketOf = (fields: Partial<ConnectionEnds>): IncomingMessage =>
    ({ socket: { ...ENDS, ...fields } }) as IncomingMessage;

  it('is uid 0 over loopback, in no container and not the agent', async () => {
    const root = { uid: 0, contained: false, agent: false };
    const table: readonly (readonly [string, object, typeof root | undefined, boolean])[] = [
      ['IPv4', {}, root, true],
      ['IPv6', IPV6, root, true],
      ['another user', {}, { ...root, uid: 1000 }, false],
      ['in a container', {}, { ...root, contained: true }, false],
      ['the agent', {}, { ...root, agent: true }, false],
      ['unknown', {}, undefined, false],
      ['from another machine', { remoteAddress: '192.0.2.1' }, root, false],
      ['to an address of the network', { localAddress: '192.0.2.1' }, root, false],
      ['closed', { localAddress: undefined, localPort: undefined }, root, false],
    ];
    for (const [name, fields, peer, isRoot] of table) {
      const user = await localRoot(async () => peer)(socketOf(fields), signal);
      assert.equal(user?.username, isRoot ? 'system:local-root' : undefined, name);
    }
  });

  it('is identified one connection at a time, and not at all after the connection is closed', async () => {
    let busy = 0;
    let asked = 0;
    const authenticate = localRoot(async () => {
      assert.equal(++busy, 1);
      await new Promise(setImmediate);
      busy--;
      asked++;
      return { uid: 0, contained: false, agent: false };
    });
    const requests = Array.from({ length: 5 }, () => socketOf({}));
    const users = requests.map((request) => authenticate(request, signal));
    // An address is lost with its connection.
    Object.assign(requests[3]?.socket ?? {}, { remoteAddress: undefined });
    const names = (await Promise.all(users)).map((user) => user?.username);
    assert.deepEqual(
      names.map((name) => name === 'system:local-root'),
      [true, true, true, false, true],
    );
    assert.equal(asked, 4);
  });

  for (const [listen, address] of [
    ['127.0.0.1', '127.0.0.1'],
    ['::', '127.0.0.1'],
    ['::', '::1'],
  ] as const) {
    const skip = listen === '::' && !existsSync('/proc/net/tcp6') && 'this machine has no IPv6';
    it(`is not a probe that a container redirects to ${address} of a server on ${listen}`, { skip }, async () => {
      const server = createServer();
      await new Promise<void>((ready) => server.listen(0, listen, ready));
      const ours = connect((server.address() as AddressInfo).port, address);
      try {
        const [socket] = (await once(server, 'connection')) as [Socket];
        const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = socket;
        const peer = await tcpPeer({ remoteAddress, remotePort, localAddress, localPort });
        assert.deepEqual(peer, { uid: process.getuid?.(), contained: false, agent: process.getuid?.() === 0 });
        assert.equal(await localRoot()({ socket } as IncomingMessage, signal), undefined);
      } finally {
        ours.destroy();
        server.close();
      }
    });
  }
});
