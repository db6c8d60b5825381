// What every HTTP client promises about a peer that misbehaves. A client passes by being opened on a port.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { until } from '../../harness/until.ts';
import { MISBEHAVING_PEERS, openPeer, type OpenPeer } from './misbehaving-peers.ts';

export type ClientUnderTest = {
  /** One request; the answer does not matter, that there is one does. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>;
  readonly close?: () => Promise<void>;
};

export type ContractOptions = {
  /** Within which the client must settle by itself. Absent: only its signal ends it. */
  readonly deadlineMs?: number;
  /** What it may take from a peer that never stops, beside the buffers of the sockets. */
  readonly maxBytes: number;
  /** It keeps good connections for later; `close` ends them. */
  readonly keepsConnections?: boolean;
  /** Peers that do not apply, with the reason. */
  readonly except?: Readonly<Record<string, string>>;
};

export type OpenClient = (port: number) => ClientUnderTest | Promise<ClientUnderTest>;

/** Time for a loaded machine to notice. */
const SLACK_MS = 5_000;
/** Each has a peer and a client of its own, and most of the time both only wait. */
const AT_ONCE = 4;
/** What the kernel takes on both ends before anybody has read it. */
const SOCKET_BUFFERS = 12 * 1024 * 1024;

export function httpClientContract(name: string, open: OpenClient, options: ContractOptions): void {
  describe(`HTTP client contract: ${name}`, { concurrency: AT_ONCE }, () => {
    for (const peer of MISBEHAVING_PEERS) {
      if (options.except?.[peer.name] !== undefined) continue;
      it(`a peer that ${peer.name}`, async () => {
        const there = await openPeer(peer);
        try {
          await tryOn(there, await open(there.port), options);
        } finally {
          await there.close();
        }
      });
    }

    it('a signal that is aborted already', async () => {
      const there = await openPeer({ name: 'says nothing', answer: () => undefined });
      const client = await open(there.port);
      try {
        await within(SLACK_MS, client.ask(AbortSignal.abort(new Error('over'))));
        assert.equal(there.sent(), 0);
      } finally {
        await client.close?.();
        await there.close();
      }
    });
  });
}

async function tryOn(peer: OpenPeer, client: ClientUnderTest, options: ContractOptions): Promise<void> {
  try {
    if (options.deadlineMs !== undefined) await settlesByItself(client, peer, options.deadlineMs, options);
    await settlesOnAbort(client, peer, options);
  } finally {
    await client.close?.();
  }
  await gone(peer);
}

async function settlesByItself(
  client: ClientUnderTest,
  peer: OpenPeer,
  deadlineMs: number,
  { maxBytes, keepsConnections }: ContractOptions,
): Promise<void> {
  await within(deadlineMs + SLACK_MS, client.ask(new AbortController().signal));
  if (keepsConnections !== true) await gone(peer);
  const sent = peer.sent();
  assert.ok(sent <= maxBytes + SOCKET_BUFFERS, `took ${sent} bytes`);
}

async function settlesOnAbort(
  client: ClientUnderTest,
  peer: OpenPeer,
  { keepsConnections }: ContractOptions,
): Promise<void> {
  const stop = new AbortController();
  const asking = client.ask(stop.signal);
  // Some answers end the request before there is anything to abort.
  await Promise.race([peer.asked, asking.catch(() => undefined)]);
  stop.abort(new Error('over'));
  await within(SLACK_MS, asking);
  if (keepsConnections !== true) await gone(peer);
}

const gone = (peer: OpenPeer): Promise<unknown> =>
  until('the connection is gone', () => peer.connections() === 0, SLACK_MS);

/** Settled, however: an answer and an error will both do. */
async function within(ms: number, promise: Promise<unknown>): Promise<void> {
  let settled = false;
  const settle = (): void => void (settled = true);
  promise.then(settle, settle);
  await until('it is settled', () => settled, ms);
}
