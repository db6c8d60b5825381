// GET /debug/waterfalls/{namespace}/{pod} (ours): what the pod's last start and stop waited for, and how long, as a drawing
// or as JSON. GET /debug/waterfalls: the slowest of late. `?output=text` and `?output=json` win over the Accept header.
import { json, reply } from '../replies.ts';
import { wantsJson, type Endpoint, type Exchange } from '../router.ts';

type Kind = 'start' | 'stop';

export type WaterfallDeps<W> = {
  readonly waterfalls: {
    /** The pod's latest start and stop, in order. */
    ofPod(namespace: string, name: string): readonly W[];
    /** Longest first. */
    slowest(count: number, kind: Kind): readonly W[];
  };
  readonly drawn: (waterfall: W) => string;
};

const SLOWEST = 20;

export function waterfallRoutes<W>({ waterfalls, drawn }: WaterfallDeps<W>): Endpoint {
  const show = (exchange: Exchange, found: readonly W[]): void => {
    if (wantsJson(exchange)) json(exchange.response, { waterfalls: found }, { newline: true });
    else reply(exchange.response, 200, found.map((w) => `${drawn(w)}\n`).join('\n'));
  };
  const slowest = (exchange: Exchange): void => {
    const kind = exchange.query.get('kind') === 'stop' ? 'stop' : 'start';
    show(exchange, waterfalls.slowest(SLOWEST, kind));
  };
  const ofPod = (exchange: Exchange): void => {
    const { namespace = '', pod = '' } = exchange.params;
    const found = waterfalls.ofPod(namespace, pod);
    if (found.length > 0) return show(exchange, found);
    reply(exchange.response, 404, `no start or stop of pod "${pod}" in namespace "${namespace}" is remembered\n`, {
      nosniff: true,
    });
  };
  return {
    roots: [{ prefix: '/debug/waterfalls' }],
    routes: [
      { path: '/debug/waterfalls', methods: ['GET'], handle: slowest },
      { path: '/debug/waterfalls/{namespace}/{pod}', methods: ['GET'], handle: ofPod },
    ],
  };
}
