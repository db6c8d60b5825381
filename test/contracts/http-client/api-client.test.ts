// The API client against peers that misbehave: over plain HTTP/1.1, with TLS towards a peer that speaks none, and behind TLS that
// has agreed on HTTP/2 with a peer that speaks something else.
// runs: gate
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import tls from 'node:tls';
import { KubeClient } from '../../../src/kube/client.ts';
import type { Credentials } from '../../../src/kube/credentials.ts';
import { NODES } from '../../../src/kube/resources.ts';
import { Transport } from '../../../src/kube/transport.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { TokenBucket } from '../../../src/lib/token-bucket.ts';
import { issueCertificate, selfSignedAuthority } from '../../../src/lib/x509/certificate.ts';
import { newKeyPair, privateKeyPem } from '../../../src/lib/x509/keys.ts';
import { httpClientContract, type ClientUnderTest } from './contract.ts';

const DEADLINE_MS = 300;
const MAX_BYTES = 128 * 1024 * 1024;
const anonymous: Credentials = { current: () => Promise.resolve({}), refused: () => false };

type Open = { client: KubeClient; transport: Transport };

function open(server: string): Open {
  const access = { server, insecure: true, auth: {} };
  const options = { userAgent: 'test', connectTimeoutMs: DEADLINE_MS };
  const transport = new Transport({ clock: systemClock, credentials: anonymous }, access, options);
  const limiter = new TokenBucket(systemClock, 0, 0);
  return { client: new KubeClient({ clock: systemClock, transport, limiter }, { timeoutMs: DEADLINE_MS }), transport };
}

const get = ({ client }: Open, signal: AbortSignal): Promise<unknown> => client.get(NODES, { name: 'n' }, signal);

/** Has no deadline of its own once it stands: only its signal ends it. */
async function watch({ client }: Open, signal: AbortSignal): Promise<void> {
  for await (const _event of client.watch(NODES, {}, 60_000, signal));
}

const under = (opened: Open, ask: typeof get, more?: () => void): ClientUnderTest => ({
  ask: (signal) => ask(opened, signal),
  close: () => {
    opened.transport.resetConnections();
    more?.();
    return Promise.resolve();
  },
});

for (const scheme of ['http', 'https'] as const) {
  const name = `API client, request by ${scheme}`;
  const url = (port: number): string => `${scheme}://127.0.0.1:${port}`;
  httpClientContract(name, (port) => under(open(url(port)), get), { deadlineMs: DEADLINE_MS, maxBytes: MAX_BYTES });
  httpClientContract(`API client, watch by ${scheme}`, (port) => under(open(url(port)), watch), {
    maxBytes: MAX_BYTES,
  });
}

/** Takes the TLS off and promises HTTP/2. */
async function promising(port: number): Promise<{ url: string; close: () => void }> {
  const keys = newKeyPair();
  const times = { notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + 3_600_000 };
  const authority = {
    certificatePem: selfSignedAuthority({ commonName: 'ca' }, keys, times),
    privateKey: keys.privateKey,
  };
  const cert = issueCertificate(authority, {
    ...times,
    subject: { commonName: 'peer' },
    publicKey: keys.publicKey,
    usages: ['serverAuth'],
    ipAddresses: ['127.0.0.1'],
  });
  const options = { cert, key: privateKeyPem(keys.privateKey), ALPNProtocols: ['h2'] };
  const server = tls.createServer(options, (near) => {
    const far = net.connect(port, '127.0.0.1');
    for (const socket of [near, far]) socket.on('error', () => undefined);
    near.pipe(far).once('close', () => near.destroy());
    far.pipe(near).once('close', () => far.destroy());
  });
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}

for (const [what, ask, limits] of [
  ['request', get, { deadlineMs: DEADLINE_MS }],
  ['watch', watch, {}],
] as const)
  httpClientContract(
    `API client, ${what} by HTTP/2`,
    async (port) => {
      const front = await promising(port);
      return under(open(front.url), ask, front.close);
    },
    { ...limits, maxBytes: MAX_BYTES },
  );
