// GET /pods: the pods this node should run, as a v1 PodList. GET /runningpods/: the pods the runtime runs.
// GET /problems (ours): what is wrong with the manifests pods come from; a list of its own, so that /pods stays a PodList.
import type { Pod } from '../../core/pod.ts';
import type { ObservedContainer, PodSnapshot } from '../../core/snapshot.ts';
import type { ObservedPods, PodsView } from '../pods-view.ts';
import { json } from '../replies.ts';
import { exactly, type Endpoint } from '../router.ts';

/** A list of nothing is null, as Go encodes it. */
const podList = (items: readonly unknown[]): unknown => ({
  kind: 'PodList',
  apiVersion: 'v1',
  metadata: {},
  items: items.length === 0 ? null : items,
});

/** As in a list: without kind and apiVersion. */
const listed = ({ metadata, spec, status }: Pod): unknown => ({ metadata, spec, status: status ?? {} });

export const podsRoutes = (pods: PodsView): Endpoint => {
  const handle: Endpoint['routes'][number]['handle'] = ({ response }) =>
    json(response, podList(pods.all().map(listed)), { newline: true });
  return {
    roots: [{ prefix: '/pods' }],
    routes: [
      { path: '/pods', methods: ['GET'], handle },
      { path: '/pods/', methods: ['GET'], handle },
    ],
  };
};

/** containerd tells the id of the image as its reference only. */
const runningContainer = ({ name, imageId, imageRef }: ObservedContainer): unknown => ({
  name,
  image: imageId || imageRef,
  resources: {},
});

const runningPod = ({ uid, name, namespace, containers }: PodSnapshot): unknown => ({
  metadata: { name, namespace, uid },
  spec: { containers: containers.filter((c) => c.state === 'running').map(runningContainer) },
  status: {},
});

export const runningPodsRoutes = (observed: Pick<ObservedPods, 'all'>): Endpoint => ({
  roots: [{ prefix: '/runningpods', slashOnly: true }],
  routes: [
    {
      path: '/runningpods/',
      methods: ['GET'],
      handle: ({ response }) => {
        const running = observed
          .all()
          .filter((s) => s.sandboxes.some((x) => x.ready) || s.containers.some((c) => c.state === 'running'));
        json(response, podList(running.map(runningPod)), { newline: true });
      },
    },
  ],
});

export interface Problems {
  problems(): readonly unknown[];
}

export const problemsRoutes = (board: Problems): Endpoint =>
  exactly('/problems', ({ response }) => json(response, { problems: board.problems() }, { newline: true }), ['GET']);
