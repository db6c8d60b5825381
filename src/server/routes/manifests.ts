// /manifests/{namespace}/{name} (ours, with --enable-manifest-api): give, read and take away pods of this node without an
// API server. What is put is kept over restarts.
import type { Pod } from '../../core/pod.ts';
import { isFault } from '../../lib/errors.ts';
import { bodyOf } from '../request-body.ts';
import { json, reply } from '../replies.ts';
import type { Endpoint, Exchange } from '../router.ts';

export interface Manifests {
  list(): readonly Pod[];
  get(namespace: string, name: string): { readonly text: string } | undefined;
  /** Rejects with `invalid` and every reason, `conflict` or `exhausted`. */
  put(
    namespace: string,
    name: string,
    body: string,
    signal: AbortSignal,
  ): Promise<{ readonly pod: Pod; readonly created: boolean }>;
  /** Whether there was one. */
  delete(namespace: string, name: string): Promise<boolean>;
}

const MAX_BODY = 10 * 1024 * 1024;
const PATH = '/manifests/{namespace}/{name}';

export const manifestRoutes = (manifests: Manifests): Endpoint => ({
  roots: [{ prefix: '/manifests', slashOnly: true }],
  routes: [
    {
      path: '/manifests/',
      methods: ['GET'],
      handle: ({ response }) =>
        json(response, { kind: 'PodList', apiVersion: 'v1', metadata: {}, items: manifests.list() }, { newline: true }),
    },
    {
      path: PATH,
      methods: ['GET'],
      handle: ({ params, response }) => {
        const found = manifests.get(params['namespace'] ?? '', params['name'] ?? '');
        if (found === undefined) return reply(response, 404, 'manifest does not exist');
        reply(response, 200, found.text, { contentType: 'application/yaml' });
      },
    },
    { path: PATH, methods: ['PUT'], handle: (exchange) => put(manifests, exchange) },
    {
      path: PATH,
      methods: ['DELETE'],
      handle: async ({ params, response }) => {
        const there = await manifests.delete(params['namespace'] ?? '', params['name'] ?? '');
        reply(response, there ? 200 : 404, there ? 'manifest removed' : 'manifest does not exist');
      },
    },
  ],
});

async function put(manifests: Manifests, { params, request, response, signal }: Exchange): Promise<void> {
  try {
    const body = await bodyOf(request, MAX_BODY);
    const { pod, created } = await manifests.put(params['namespace'] ?? '', params['name'] ?? '', body, signal);
    reply(response, created ? 201 : 200, `${JSON.stringify(pod)}\n`, { contentType: 'application/json' });
  } catch (err) {
    if (isFault(err, 'invalid')) return reply(response, 422, err.message);
    if (isFault(err, 'conflict')) return reply(response, 409, err.message);
    if (isFault(err, 'exhausted')) return reply(response, 413, err.message);
    throw err;
  }
}
