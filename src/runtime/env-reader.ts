// Reads what a container's environment refers to, each object and file once, and builds it. Files are read one after the
// other, each within what is left of the budget.
import { realpath } from 'node:fs/promises';
import { PATH_MAX } from '../core/bounds.ts';
import { isStaticPod, namespaceOf, type Container, type Pod } from '../core/pod.ts';
import { findBeneath } from '../host/files/beneath.ts';
import type { PinnedFile } from '../host/files/open-dir.ts';
import type { Budget } from '../lib/budget.ts';
import { errnoOf, isFault, KubeletError, messageOf } from '../lib/errors.ts';
import { settleAll } from '../lib/settle.ts';
import { envText } from './env-bytes.ts';
import { containerEnv, envReferences, type EnvFacts } from './env.ts';
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
    budget: Budget,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    const references = envReferences(container);
    const namespace = namespaceOf(pod);
    const all = async <T>(names: Iterable<string>, get: (name: string) => Promise<T | undefined>) =>
      new Map(await settleAll([...names].map(async (name) => [name, await absentAsUndefined(get(name))] as const)));
    const [, configMaps, secrets, files] = await settleAll([
      isStaticPod(pod) ? Promise.resolve() : this.#cluster.servicesRead(signal),
      all(references.configMaps, (name) => this.#cluster.configMap(namespace, name, signal)),
      all(references.secrets, (name) => this.#cluster.secret(namespace, name, signal)),
      readFiles(volumes, references.files, budget, signal),
    ]);
    const objects = { configMaps, secrets, files, services: this.#cluster.services() };
    return containerEnv(pod, container, objects, facts, budget);
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

type FileReference = { readonly volumeName: string; readonly path: string };

async function readFiles(
  volumes: MountedVolumes,
  references: ReadonlyMap<string, FileReference>,
  budget: Budget,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string | undefined>> {
  const files = new Map<string, string | undefined>();
  for (const [key, reference] of references) {
    signal.throwIfAborted();
    const bytes = await readInVolume(volumes, reference);
    budget.take(bytes?.length ?? 0, `environment file ${reference.path}`);
    files.set(key, bytes === undefined ? undefined : envText(bytes));
  }
  return files;
}

/** The file's bytes; nothing a container does to the path meanwhile leads out of the volume. */
async function readInVolume(
  volumes: MountedVolumes,
  { volumeName, path }: FileReference,
): Promise<Uint8Array | undefined> {
  const volume = volumes.get(volumeName);
  if (volume === undefined || volume.hostPath === '')
    throw new KubeletError('invalid', `cannot find the volume "${volumeName}" referenced by FileKeyRef`);
  if (Buffer.byteLength(path) >= PATH_MAX)
    throw new KubeletError('invalid', `path of an environment file is longer than ${PATH_MAX - 1} bytes`);
  let file: PinnedFile | undefined;
  try {
    file = await findBeneath(await realpath(volume.hostPath), path);
    return await file.read(MAX_FILE_BYTES);
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
