// Reads what a container's environment refers to, all at once, and builds it.
import { realpath } from 'node:fs/promises';
import { namespaceOf, type Container, type Pod } from '../core/pod.ts';
import { findBeneath } from '../host/files/beneath.ts';
import type { PinnedFile } from '../host/files/open-dir.ts';
import { errnoOf, isFault, KubeletError, messageOf } from '../lib/errors.ts';
import { settleAll } from '../lib/settle.ts';
import { envText } from './env-bytes.ts';
import { containerEnv, envReferences, fileKey, type EnvFacts } from './env.ts';
import type { MountedVolumes } from './mounts.ts';
import type { ClusterView } from './needs.ts';

const MAX_FILE_BYTES = 1024 * 1024;

export class EnvReader {
  readonly #cluster: ClusterView;

  constructor(cluster: ClusterView) {
    this.#cluster = cluster;
  }

  async read(
    pod: Pod,
    container: Container,
    volumes: MountedVolumes,
    facts: EnvFacts,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    const references = envReferences(container);
    const namespace = namespaceOf(pod);
    const all = async <T>(names: Iterable<string>, get: (name: string) => Promise<T | undefined>) =>
      new Map(await settleAll([...names].map(async (name) => [name, await absentAsUndefined(get(name))] as const)));
    const [configMaps, secrets, files] = await settleAll([
      all(references.configMaps, (name) => this.#cluster.configMap(namespace, name, signal)),
      all(references.secrets, (name) => this.#cluster.secret(namespace, name, signal)),
      settleAll(references.files.map(async (file) => [fileKey(file), await readInVolume(volumes, file)] as const)),
    ]);
    const objects = { configMaps, secrets, files: new Map(files), services: this.#cluster.services() };
    return containerEnv(pod, container, objects, facts);
  }
}

async function absentAsUndefined<T>(reading: Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (err) {
    if (isFault(err, 'notFound')) return undefined;
    throw err;
  }
}

/** The file's text; nothing a container does to the path meanwhile leads out of the volume. */
async function readInVolume(
  volumes: MountedVolumes,
  { volumeName, path }: { readonly volumeName: string; readonly path: string },
): Promise<string | undefined> {
  const volume = volumes.get(volumeName);
  if (volume === undefined || volume.hostPath === '')
    throw new KubeletError('invalid', `cannot find the volume "${volumeName}" referenced by FileKeyRef`);
  let file: PinnedFile | undefined;
  try {
    file = await findBeneath(await realpath(volume.hostPath), path);
    return envText(await file.read(MAX_FILE_BYTES));
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return undefined;
    if (isFault(err, 'denied'))
      throw new KubeletError('invalid', `file "${path}" is outside of volume "${volumeName}"`, { cause: err });
    if (isFault(err, 'exhausted'))
      throw new KubeletError('invalid', `environment file "${path}" is too large`, { cause: err });
    if (isFault(err, 'invalid'))
      throw new KubeletError('invalid', `environment file "${path}" is ${messageOf(err)}`, { cause: err });
    throw err;
  } finally {
    await file?.close();
  }
}
