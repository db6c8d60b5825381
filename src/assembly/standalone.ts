// A node without an API server: its objects are manifests beside the static pods, its events stay on the node.
import { ApiEventRecorder } from '../kube/events.ts';
import { createStandaloneNode } from '../node/standalone-node.ts';
import type { LocalObjectStore } from '../sources/local-objects.ts';
import { StandaloneObjects } from '../sources/standalone-objects.ts';
import type { ClusterPort, ObjectChange } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export async function buildStandalone(
  base: Foundation,
  edge: Pick<RuntimeEdge, 'resources' | 'health'>,
  objects: LocalObjectStore,
  onObjectChange: ObjectChange,
): Promise<ClusterPort> {
  const { clock, log, nodeName, records } = base;
  const events = new ApiEventRecorder(
    { clock, log: log.child({ component: 'events' }), onEvent: (event) => records.timeline.event(event) },
    { nodeName },
  );
  const { node, nodeIps } = await createStandaloneNode(base, edge);
  objects.onObjectChange(onObjectChange);
  return {
    events,
    objects: new StandaloneObjects(objects),
    prepare: () => Promise.resolve(),
    parts: [events],
    sources: [],
    node,
    freshNode: async () => node(),
    nodeIps,
    nodeChanged: () => undefined,
    statusChanged: () => undefined,
    podsRead: () => Promise.resolve(),
    mirrorStatus: () => undefined,
    keepMirror: () => undefined,
    removeMirror: () => Promise.resolve(),
  };
}
