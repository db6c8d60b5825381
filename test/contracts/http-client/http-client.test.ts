// The clients of the agent, against peers that misbehave.
import { httpProber } from '../../../src/probes/http-prober.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { httpExchange } from '../../../src/lib/http/exchange.ts';
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
        httpProber(systemClock, 'test')(
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
