// GET and POST /stats/summary. What is in it comes from the statistics; this is only its place.
import { messageOf } from '../../lib/errors.ts';
import { reply } from '../replies.ts';
import type { Endpoint } from '../router.ts';

export interface SummarySource {
  /** The Summary; `onlyCpuAndMemory` gives the reduced form. */
  summary(options: { readonly onlyCpuAndMemory: boolean }, signal: AbortSignal): Promise<object>;
}

export const statsRoutes = (source: SummarySource | undefined): Endpoint => ({
  roots: [{ prefix: '/stats', slashOnly: true }],
  routes: [
    {
      path: '/stats/summary',
      methods: ['GET', 'POST'],
      handle: async ({ query, response, signal }) => {
        if (source === undefined)
          return reply(response, 500, 'Internal Error: no statistics are gathered on this node');
        const reduced = ['1', 't', 'T', 'true', 'TRUE', 'True'].includes(query.get('only_cpu_and_memory') ?? '');
        let summary: object;
        try {
          summary = await source.summary({ onlyCpuAndMemory: reduced }, signal);
        } catch (err) {
          if (signal.aborted) throw err;
          return reply(response, 500, `Internal Error: ${messageOf(err)}`);
        }
        reply(response, 200, JSON.stringify(summary, undefined, 1), { contentType: 'application/json' });
      },
    },
  ],
});
