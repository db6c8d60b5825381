// The clients of the agent, against peers that misbehave.
// runs: gate
import { silentLogger } from '../../../src/lib/logger.ts';
import { httpProber } from '../../../src/probes/http-prober.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { NameLookup } from '../../../src/lib/name-lookup.ts';
import { httpExchange } from '../../../src/lib/http/exchange.ts';
import { readReply } from '../../../src/lib/http/exchange.ts';
import { connectApi } from '../../../src/kube/connect.ts';
import { resolveKubeconfig } from '../../../src/kube/kubeconfig.ts';
import { NODES } from '../../../src/kube/resources.ts';
import { hookHttp } from '../../../src/runtime/hook-http.ts';
import { dialRuntime } from '../../../src/server/streaming/runtime-dial.ts';
import { Decoder } from '../../../src/sources/decoder.ts';
import { HttpSource } from '../../../src/sources/http-source.ts';
import { httpClientContract } from './contract.ts';

const DEADLINE_MS = 300;

httpClientContract(
  'one exchange',
  (port) => ({
    ask: (signal) =>
      httpExchange(
        systemClock,
        {
          target: { scheme: 'http', host: '127.0.0.1', port, path: '/' },
          headers: {},
          verifyCertificate: true,
          deadlineMs: DEADLINE_MS,
          maxBodyBytes: 1024,
        },
        signal,
      ),
  }),
  { deadlineMs: DEADLINE_MS, maxBytes: 64 * 1024 },
);

for (const scheme of ['HTTP', 'HTTPS'] as const)
  httpClientContract(
    `probe by ${scheme}`,
    (port) => ({
      ask: (signal) =>
        httpProber(
          systemClock,
          new NameLookup(),
          'test',
        )(
          {
            probe: { httpGet: { port, scheme } },
            container: { name: 'c' },
            containerId: 'id',
            podIp: '127.0.0.1',
            timeoutMs: DEADLINE_MS,
          },
          signal,
        ),
    }),
    { deadlineMs: DEADLINE_MS, maxBytes: 64 * 1024 },
  );

httpClientContract(
  'lifecycle hook',
  (port) => ({
    ask: (signal) => hookHttp(systemClock).get(new URL(`http://127.0.0.1:${port}/`), { 'X-A': 'b' }, signal),
  }),
  // A hook has as long as its pod's grace period: the signal.
  { maxBytes: 64 * 1024 },
);

httpClientContract(
  'static pod URL',
  (port) => ({
    ask: async (signal) => {
      const own = new AbortController();
      const stop = (): void => own.abort();
      signal.addEventListener('abort', stop);
      if (signal.aborted) stop();
      const source = new HttpSource(
        { clock: systemClock, log: silentLogger, decoder: new Decoder(systemClock), emit: stop, report: stop },
        { url: `http://127.0.0.1:${port}/`, headers: {}, nodeName: 'n', pollMs: 60_000, timeoutMs: DEADLINE_MS },
      );
      await source.run(own.signal);
    },
  }),
  { deadlineMs: DEADLINE_MS, maxBytes: 10 * 1024 * 1024 },
);

httpClientContract(
  'stream of the runtime',
  (port) => ({
    ask: async (signal) => {
      const asked = { url: `http://127.0.0.1:${port}/`, method: 'POST', headers: { upgrade: 'SPDY/3.1' } };
      const reply = await dialRuntime(systemClock, asked, signal);
      if (reply.upgraded !== undefined) return reply.destroy();
      await readReply(systemClock, reply, { maxBodyBytes: 1024, deadlineMs: DEADLINE_MS }, signal);
    },
  }),
  { maxBytes: 64 * 1024 },
);

httpClientContract(
  'API server',
  async (port) => {
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
      users: [],
      contexts: [{ name: 'x', context: { cluster: 'c', user: '' } }],
      'current-context': 'x',
    };
    const access = await resolveKubeconfig(JSON.stringify(config), '/kubeconfig');
    const budgets = { qps: -1, burst: 0, eventQps: -1, eventBurst: 0, leaseDurationSeconds: 1, statusUpdateMs: 10_000 };
    const options = { ...budgets, version: 'v1.36.0', architecture: 'amd64' };
    const { heartbeat, transport } = connectApi({ clock: systemClock, log: silentLogger }, access, options);
    return {
      ask: (signal) => heartbeat.get(NODES, { name: 'n' }, signal),
      close: async () => transport.resetConnections(),
    };
  },
  // Lists of a large cluster must fit: 128 MiB an answer.
  { deadlineMs: 1000, maxBytes: 128 * 1024 * 1024, keepsConnections: true },
);
