// The local pod sources: manifest files and a manifest URL.
import { join } from 'node:path';
import type { PodSnapshot } from '../core/snapshot.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { ClusterPort } from './cluster-port.ts';
import { Decoder } from '../sources/decoder.ts';
import { FileSource } from '../sources/file-source.ts';
import { HttpSource } from '../sources/http-source.ts';
import type { LocalObjectStore } from '../sources/local-objects.ts';
import { ManifestStore } from '../sources/manifest-store.ts';
import { PodConfig, type PodChange } from '../sources/merge.ts';
import { ProblemBoard } from '../sources/problem.ts';
import { live, type Foundation } from './foundation.ts';

export type Sources = {
  readonly merged: PodConfig;
  readonly problems: ProblemBoard;
  /** With --enable-manifest-api. */
  readonly manifests?: ManifestStore;
  readonly parts: readonly Runnable[];
};

export function buildSources(
  base: Foundation,
  cluster: ClusterPort,
  options: {
    readonly objects?: LocalObjectStore;
    readonly onChange: (change: PodChange) => void;
    readonly observed: { all(): Iterable<PodSnapshot> };
  },
): Sources {
  const { clock, config, flags, nodeName } = base;
  const log = base.log.child({ component: 'sources' });
  const withFile = config.staticPodPath !== '';
  const withUrl = config.staticPodURL !== '';
  const withManifests = flags.enableManifestApi;
  const names = [
    ...(withFile ? ['file'] : []),
    ...(withUrl ? ['http'] : []),
    ...(withManifests ? ['manifests'] : []),
    ...cluster.sources,
  ];
  const merged = new PodConfig({ clock, log, events: cluster.events, onChange: options.onChange }, { sources: names });
  const problems = new ProblemBoard({ clock, log, events: cluster.events });
  const decoder = new Decoder(clock);
  const parts: Runnable[] = [];
  if (withFile)
    parts.push(
      new FileSource(
        {
          clock,
          log,
          decoder,
          emit: (pods) => merged.set('file', pods),
          report: (found) => problems.set('file', found),
          observed: options.observed,
          ...(options.objects === undefined ? {} : { objects: options.objects }),
        },
        live(base, ['fileCheckFrequency'], (now) => ({
          path: config.staticPodPath,
          nodeName,
          get rescanMs() {
            return now.current.fileCheckFrequencyMs;
          },
        })),
      ),
    );
  if (withUrl)
    parts.push(
      new HttpSource(
        {
          clock,
          log,
          decoder,
          emit: (pods) => merged.set('http', pods),
          report: (found) => problems.set('http', found),
        },
        { url: config.staticPodURL, headers: config.staticPodURLHeader, nodeName, pollMs: config.httpCheckFrequencyMs },
      ),
    );
  if (!withManifests) return { merged, problems, parts };
  const manifests = new ManifestStore(
    {
      log,
      decoder,
      emit: (pods) => merged.set('manifests', pods),
      report: (found) => problems.set('manifests', found),
    },
    { directory: join(flags.rootDir, 'manifests-api'), nodeName, localObjects: options.objects !== undefined },
  );
  return { merged, problems, manifests, parts: [...parts, manifests] };
}
