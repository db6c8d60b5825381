// GET /debug/events and GET /debug/pulls (ours): the last events of every object on this node, whatever the API server
// did with them, and the images that pods wait for. JSON.
import type { KubeEvent } from '../../core/node.ts';
import { json } from '../replies.ts';
import { exactly, joined, type Endpoint } from '../router.ts';

export type NodeViewDeps = {
  /** Oldest first. */
  readonly events: () => readonly KubeEvent[];
  readonly pulls: () => readonly object[];
};

export const nodeViewRoutes = ({ events, pulls }: NodeViewDeps): Endpoint =>
  joined([
    exactly(
      '/debug/events',
      ({ query, response }) => {
        const [namespace, name] = [query.get('namespace'), query.get('name')];
        const wanted = events().filter(
          ({ involvedObject: about }) =>
            (namespace === null || about.namespace === namespace) && (name === null || about.name === name),
        );
        json(response, { events: wanted }, { newline: true });
      },
      ['GET'],
    ),
    exactly('/debug/pulls', ({ response }) => json(response, { pulls: pulls() }, { newline: true }), ['GET']),
  ]);
