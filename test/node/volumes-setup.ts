// What the volume tests share: a root directory of their own, stand-ins for the API, and a view of the files.
import { execFileSync } from 'node:child_process';
import type { ConfigMap, Secret } from '../../src/core/node.ts';
import type { Pod } from '../../src/core/pod.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { KubeletError } from '../../src/lib/errors.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createVolumes, type Volumes, type VolumesDeps, type VolumesOpts } from '../../src/volumes/create.ts';
import { mountsBeneath, removeFolder, temporaryFolder } from '../harness/temporary-folder.ts';

export { mountsBeneath };
export type Recorded = { pod: string; type: string; reason: string; message: string };

export class Bench {
  readonly root = temporaryFolder('kubelet-volumes-');
  readonly configMaps = new Map<string, ConfigMap>();
  readonly secrets = new Map<string, Secret>();
  readonly events: Recorded[] = [];
  readonly signal = new AbortController().signal;
  tokens = 0;
  readonly #managers: Volumes['manager'][] = [];

  deps(): VolumesDeps {
    return {
      objects: {
        configMap: (ns, name) => found(this.configMaps, 'configmap', ns, name),
        secret: (ns, name) => found(this.secrets, 'secret', ns, name),
      },
      facts: {
        factsOf: () => ({ podIPs: ['10.0.0.9'], hostIPs: ['192.0.2.7'] }),
        allocatable: () => ({ cpu: '4', memory: '1Gi' }),
      },
      tokens: {
        token: (_pod, { audience }) =>
          Promise.resolve({ token: `token-${++this.tokens}-for-${audience}`, refreshAtMs: Infinity }),
      },
      events: {
        pod: (pod, type, reason, message) => void this.events.push({ pod: pod.metadata.name, type, reason, message }),
        node: () => undefined,
      },
      clock: systemClock,
      log: silentLogger,
    };
  }

  open(deps: Partial<VolumesDeps> = {}, opts: Partial<VolumesOpts> = {}): Volumes {
    const volumes = createVolumes({ ...this.deps(), ...deps }, { rootDir: this.root, ...opts });
    this.#managers.push(volumes.manager);
    return volumes;
  }

  /** Unmounts whatever is left beneath the root and removes it. Returns what was left mounted. */
  dispose(): string[] {
    // Ends back-offs that would keep the process alive.
    for (const manager of this.#managers.splice(0)) void manager.run(AbortSignal.abort());
    const left = mountsBeneath(this.root);
    removeFolder(this.root);
    return left;
  }
}

function found<T>(objects: Map<string, T>, kind: string, namespace: string, name: string): Promise<T> {
  const object = objects.get(`${namespace}/${name}`);
  return object === undefined
    ? Promise.reject(new KubeletError('notFound', `${kind} "${name}" not found`))
    : Promise.resolve(object);
}

/** `drwxr-x--- 0:0 d ./volumes -> target` for everything beneath a directory, links not followed. */
export function listing(directory: string): string[] {
  return execFileSync('find', ['.', '-printf', '%M %U:%G %y %p -> %l\n'], { cwd: directory, encoding: 'utf8' })
    .trimEnd()
    .split('\n');
}

export const podNamed = (name: string, spec: Partial<Pod['spec']>, uid = `uid-${name}`): Pod => ({
  metadata: { name, namespace: 'golden', uid },
  spec: { containers: [{ name: 'c' }], ...spec },
});
