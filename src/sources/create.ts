// Fits the parts of this folder together: one source for each way of giving pods that is configured, merged into one stream.
import { join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import type { EventRecorder } from '../core/events.ts';
import type { Runnable } from '../lib/supervise.ts';
import { Decoder } from './decoder.ts';
import { FileSource, type FileSourceDeps } from './file-source.ts';
import { HttpSource } from './http-source.ts';
import { KeptPods } from './kept-pods.ts';
import type { LocalObjectStore } from './local-objects.ts';
import { ManifestStore } from './manifest-store.ts';
import { PodConfig, type PodChange } from './merge.ts';
import { ProblemBoard } from './problem.ts';

export type Sources = {
  readonly merged: PodConfig;
  readonly problems: ProblemBoard;
  readonly kept: KeptPods;
  /** With --enable-manifest-api. */
  readonly manifests?: ManifestStore;
  readonly parts: readonly Runnable[];
};

export type SourcesDeps = {
  readonly events: EventRecorder;
  readonly onChange: (change: PodChange) => void;
  readonly observed: NonNullable<FileSourceDeps['observed']>;
  /** Without an API server: ConfigMaps and Secrets among the manifests. */
  readonly objects?: LocalObjectStore;
};

/** `others` are sources that somebody else feeds (`api`). */
export function createSources(env: Environment, deps: SourcesDeps, others: readonly string[]): Sources {
  const { clock, config, flags, nodeName } = env;
  const { events, onChange, objects, observed } = deps;
  const log = env.log.child({ component: 'sources' });
  const own = ownSources(env);
  const apiObjects = !env.gates.enabled('PreventStaticPodAPIReferences');
  const merged = new PodConfig({ clock, log, events, onChange }, { sources: [...own, ...others] });
  const problems = new ProblemBoard({ clock, log, events });
  const decoder = new Decoder(clock);
  const feeding = (source: OwnSource): Pick<FileSourceDeps, 'clock' | 'log' | 'decoder' | 'emit' | 'report'> => ({
    clock,
    log,
    decoder,
    emit: (pods) => merged.set(source, pods),
    report: (found) => problems.set(source, found),
  });
  const parts: Runnable[] = [];
  const unread = new Map<OwnSource, () => readonly string[]>();
  const kept = new KeptPods({ problems, unread });
  if (own.includes('file')) {
    const files = fileSource(env, { ...feeding('file'), observed, ...(objects === undefined ? {} : { objects }) });
    unread.set('file', () => files.unread);
    parts.push(files);
  }
  if (own.includes('http'))
    parts.push(
      new HttpSource(
        { ...feeding('http'), observed },
        {
          url: config.staticPodURL,
          headers: config.staticPodURLHeader,
          nodeName,
          pollMs: config.httpCheckFrequencyMs,
          apiObjects,
        },
      ),
    );
  if (!own.includes('manifests')) return { merged, problems, kept, parts };
  const manifests = new ManifestStore(feeding('manifests'), {
    directory: join(flags.rootDir, 'manifests-api'),
    nodeName,
    localObjects: objects !== undefined,
  });
  unread.set('manifests', () => manifests.unread);
  return { merged, problems, kept, manifests, parts: [...parts, manifests] };
}

const fileSource = ({ config, gates, nodeName, updates }: Environment, deps: FileSourceDeps): FileSource =>
  new FileSource(
    deps,
    updates.live(['fileCheckFrequency'], (now) => ({
      path: config.staticPodPath,
      nodeName,
      apiObjects: !gates.enabled('PreventStaticPodAPIReferences'),
      get rescanMs() {
        return now.current.fileCheckFrequencyMs;
      },
    })),
  );

export type OwnSource = 'file' | 'http' | 'manifests';

/** The sources of this folder that are configured. */
export const ownSources = ({ config, flags }: Pick<Environment, 'config' | 'flags'>): readonly OwnSource[] => [
  ...(config.staticPodPath === '' ? [] : (['file'] as const)),
  ...(config.staticPodURL === '' ? [] : (['http'] as const)),
  ...(flags.enableManifestApi ? (['manifests'] as const) : []),
];
