// What one sync knows about its pod once it has a sandbox; every container start of the sync draws on it.
import type { PodSandboxConfig } from '../cri/gen/cri.ts';
import type { Secret } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import type { Partially } from '../lib/proto/codec.ts';
import type { UserNamespaceMapping } from './namespaces.ts';
import type { ImageVolumes } from './pod-images.ts';

export type PodSetting = {
  readonly pod: Pod;
  readonly snapshot: PodSnapshot;
  readonly pullSecrets: readonly Secret[];
  readonly runtimeHandler: string;
  readonly userns: UserNamespaceMapping | undefined;
  readonly config: Partially<PodSandboxConfig>;
};

export type SyncContext = PodSetting & {
  readonly sandboxId: string;
  readonly podIps: readonly string[];
  readonly imageVolumes: ImageVolumes;
  readonly onWaiting?: () => void;
};
