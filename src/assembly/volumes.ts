// The volume manager with all its plugins.
import type { Pod } from '../core/pod.ts';
import { uidOf } from '../core/pod.ts';
import { toNumber } from '../core/quantity.ts';
import { SafeHostFiles } from '../host/mounts/host-files.ts';
import { HostMounter } from '../host/mounts/mounter.ts';
import type { NodeResources } from '../resources/node-resources.ts';
import type { StatusStore } from '../status/status-store.ts';
import { AtomicWriter } from '../volumes/atomic-writer.ts';
import { VolumeLayout } from '../volumes/layout.ts';
import { VolumeManager } from '../volumes/manager.ts';
import { VolumeMetrics } from '../volumes/metrics.ts';
import { PluginSet } from '../volumes/plugin-set.ts';
import { ConfigMapContent } from '../volumes/plugins/config-map.ts';
import { DownwardApiContent } from '../volumes/plugins/downward-api.ts';
import { EmptyDirBacking } from '../volumes/plugins/empty-dir-backing.ts';
import { EmptyDirPlugin } from '../volumes/plugins/empty-dir.ts';
import { HostPathPlugin } from '../volumes/plugins/host-path.ts';
import { ImagePlugin } from '../volumes/plugins/image.ts';
import { ProjectedContent } from '../volumes/plugins/projected.ts';
import { SecretContent } from '../volumes/plugins/secret.ts';
import { WrittenVolumePlugin, type ContentSource } from '../volumes/plugins/written-volume.ts';
import { PodDirs } from '../volumes/pod-dirs.ts';
import { SubPaths } from '../volumes/subpath.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';

export type Volumes = { readonly manager: VolumeManager; readonly podDirs: PodDirs; readonly subPaths: SubPaths };

export function buildVolumes(
  base: Foundation,
  cluster: ClusterPort,
  resources: NodeResources,
  statuses: StatusStore,
): Volumes {
  const { clock, log, flags } = base;
  const mounter = new HostMounter({ clock }, { rootDir: flags.rootDir });
  const layout = new VolumeLayout(flags.rootDir);
  const podDirs = new PodDirs(layout, mounter);
  const subPaths = new SubPaths({ layout, mounter, clock });
  const backing = new EmptyDirBacking(layout, mounter);
  const allocatableMemory = (): number => {
    const memory = resources.allocatable().get('memory');
    return memory === undefined ? 0 : toNumber(memory);
  };
  const facts = {
    factsOf: (pod: Pod) => ({
      podIPs: (statuses.statusOf(uidOf(pod))?.podIPs ?? []).map((p) => p.ip),
      hostIPs: cluster.nodeIps(),
    }),
    allocatable: () => resources.allocatableList(),
  };
  const writer = new AtomicWriter(clock);
  const written = (source: ContentSource): WrittenVolumePlugin =>
    new WrittenVolumePlugin(source, { backing, writer, allocatableMemory });
  const plugins = new PluginSet({
    emptyDir: new EmptyDirPlugin({ backing, allocatableMemory }),
    hostPath: new HostPathPlugin(new SafeHostFiles({ clock, mounter })),
    configMap: written(new ConfigMapContent(cluster)),
    secret: written(new SecretContent(cluster)),
    downwardAPI: written(new DownwardApiContent(facts)),
    projected: written(
      new ProjectedContent({
        clock,
        objects: cluster,
        facts,
        ...(cluster.tokens === undefined ? {} : { tokens: cluster.tokens }),
      }),
    ),
    image: new ImagePlugin(),
  });
  const manager = new VolumeManager({
    resolver: plugins,
    layout,
    podDirs,
    subPaths,
    mounter,
    events: cluster.events,
    clock,
    log: log.child({ component: 'volumes' }),
    metrics: new VolumeMetrics(base.registry),
  });
  return { manager, podDirs, subPaths };
}
