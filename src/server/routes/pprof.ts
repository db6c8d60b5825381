// GET /debug/pprof/{name}: profiles of this process, in Node's own formats: CPU profiles (.cpuprofile) and sampled
// allocations (.heapprofile). One at a time. Like Go's heap profile they name functions and sizes and hold no value: a V8
// heap snapshot would hand tokens and Secrets to whoever may read, and is not served.
import type { Session } from 'node:inspector/promises';
import type { Clock } from '../../lib/clock.ts';
import { reply } from '../replies.ts';
import type { Endpoint, Exchange } from '../router.ts';
import { disabledBelow } from './disabled.ts';

export type PprofDeps = {
  readonly clock: Clock;
  /** enableProfilingHandler */
  readonly enabled: boolean;
};

const DEFAULT_SECONDS = 30;
const MAX_SECONDS = 600;
const SAMPLE_BYTES = 64 * 1024;

type Profile = (seconds: number, exchange: Exchange, deps: PprofDeps) => Promise<void>;

const PROFILES: Readonly<Record<string, Profile>> = {
  cmdline: (_seconds, { response }) =>
    Promise.resolve(reply(response, 200, process.argv.join('\0'), { nosniff: true })),
  profile: cpuProfile,
  heap: allocations,
  allocs: allocations,
};

export function pprofRoutes(deps: PprofDeps): Endpoint {
  if (!deps.enabled) return disabledBelow('/debug/pprof', 'profiling endpoint is disabled.');
  let busy = false;
  return {
    roots: [{ prefix: '/debug/pprof', slashOnly: true }],
    routes: [
      {
        path: '/debug/pprof/{name}',
        methods: ['GET'],
        handle: async (exchange) => {
          const { params, query, response } = exchange;
          const name = params['name'] ?? '';
          const profile = Object.hasOwn(PROFILES, name) ? PROFILES[name] : undefined;
          if (profile === undefined) return reply(response, 404, 'Unknown profile\n', { nosniff: true });
          const seconds = Number(query.get('seconds') ?? DEFAULT_SECONDS);
          if (!(seconds > 0 && seconds <= MAX_SECONDS))
            return reply(response, 400, `seconds must be between 1 and ${MAX_SECONDS}\n`, { nosniff: true });
          if (busy && name !== 'cmdline')
            return reply(response, 500, 'Could not enable profiling: another profile is being taken\n', {
              nosniff: true,
            });
          busy = true;
          try {
            await profile(seconds, exchange, deps);
          } finally {
            busy = false;
          }
        },
      },
    ],
  };
}

const attach = (response: Exchange['response'], name: string): void => {
  response.setHeader('Content-Type', 'application/octet-stream');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('Content-Disposition', `attachment; filename="${name}"`);
};

/** Loaded when somebody asks: few ever do. */
async function inspect(): Promise<Session> {
  const { Session } = await import('node:inspector/promises');
  const session = new Session();
  session.connect();
  return session;
}

async function cpuProfile(seconds: number, { response, signal }: Exchange, { clock }: PprofDeps): Promise<void> {
  const session = await inspect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await clock.sleep(seconds * 1000, signal);
    const { profile } = await session.post('Profiler.stop');
    attach(response, 'kubelet.cpuprofile');
    response.end(JSON.stringify(profile));
  } finally {
    session.disconnect();
  }
}

async function allocations(seconds: number, { response, signal }: Exchange, { clock }: PprofDeps): Promise<void> {
  const session = await inspect();
  try {
    await session.post('HeapProfiler.startSampling', { samplingInterval: SAMPLE_BYTES });
    await clock.sleep(seconds * 1000, signal);
    const { profile } = await session.post('HeapProfiler.stopSampling');
    attach(response, 'kubelet.heapprofile');
    response.end(JSON.stringify(profile));
  } finally {
    session.disconnect();
  }
}
