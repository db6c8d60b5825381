// One text, from a file, a URL or a request, to the pods and objects in it and every problem with its place. A document
// with an error gives nothing; its neighbours are not affected.
import type { ConfigMap, Secret } from '../core/node.ts';
import { applyPodDefaults } from '../core/pod-defaults.ts';
import type { Pod, PodSpec } from '../core/pod.ts';
import { formatFieldError, type FieldError } from '../core/validation/field-error.ts';
import { readPod } from '../core/validation/pod-shape.ts';
import { validatePod } from '../core/validation/pod.ts';
import { messageOf } from '../lib/errors.ts';
import { forbiddenReference } from './api-references.ts';
import type { Decoder } from './decoder.ts';
import { readLocalObject, type LocalObject } from './local-objects.ts';
import type { FoundProblem } from './problem.ts';
import { isUsableUid, makeStatic, type Origin } from './static-identity.ts';

export type ManifestOptions = {
  readonly nodeName: string;
  /** ConfigMaps and Secrets may stand beside pods, and pods may use them. */
  readonly localObjects: boolean;
  /** Pods may use those of the API server, and what else it has. */
  readonly apiObjects?: boolean;
  /** Lists of objects are taken apart. */
  readonly lists: boolean;
};

export type ManifestContents = {
  readonly pods: readonly Pod[];
  readonly configMaps: readonly ConfigMap[];
  readonly secrets: readonly Secret[];
  readonly problems: readonly FoundProblem[];
};

const MAX_PROBLEMS = 20;

/** One object and where in its document it is. */
type Item = { readonly document: number; readonly path: string; readonly value: unknown };
type Finding = { readonly item: Item; readonly error: FieldError; readonly severity: 'error' | 'warning' };

export async function readManifest(
  text: string,
  origin: Origin,
  options: ManifestOptions,
  decoder: Decoder,
  signal: AbortSignal,
): Promise<ManifestContents> {
  const none = { pods: [], configMaps: [], secrets: [] };
  const failed = (message: string): FoundProblem => ({ where: origin.where, severity: 'error', message });
  try {
    const decoded = await decoder.decode(text, signal);
    if (decoded.errors.length > 0)
      return { ...none, problems: decoded.errors.map((e) => ({ ...failed(e.message), ...placeOf(e) })) };
    if (decoded.documents.length === 0) return { ...none, problems: [failed('has no content')] };
    const reading = new Reading(origin, options);
    const [first, ...more] = decoded.documents;
    const documents = options.localObjects ? decoded.documents : first === undefined ? [] : [first];
    for (const { index, value } of documents) reading.add({ document: index, path: '', value });
    if (!options.localObjects && more[0] !== undefined)
      reading.warn(
        { document: more[0].index, path: '', value: undefined },
        'only the first document of a file is read',
      );
    const odd = decoded.warnings.map((w): FoundProblem => ({
      ...failed(w.message),
      severity: 'warning',
      ...placeOf(w),
    }));
    const problems = await placed(reading.findings, text, origin, decoder, signal);
    return { ...reading.contents(), problems: [...odd, ...problems] };
  } catch (err) {
    signal.throwIfAborted();
    return { ...none, problems: [failed(messageOf(err))] };
  }
}

const placeOf = ({ line, column }: { line: number; column: number }): { line: number; column: number } => ({
  line,
  column,
});

/** Gives the findings their lines, one parse for each document that has any. */
async function placed(
  findings: readonly Finding[],
  text: string,
  origin: Origin,
  decoder: Decoder,
  signal: AbortSignal,
): Promise<readonly FoundProblem[]> {
  const problems: FoundProblem[] = [];
  const shown = findings.slice(0, MAX_PROBLEMS);
  for (const document of new Set(shown.map((f) => f.item.document))) {
    const own = shown.filter((f) => f.item.document === document);
    const places = await decoder.locate(
      text,
      document,
      own.map(({ item, error }) => join(item.path, error.at ?? error.field)),
      signal,
    );
    own.forEach(({ item, error, severity }, i) => {
      const place = places[i];
      problems.push({
        where: origin.where,
        severity,
        ...(place === undefined ? {} : placeOf(place)),
        field: join(item.path, error.at ?? error.field),
        message: severity === 'error' ? formatFieldError(error) : error.message,
      });
    });
  }
  const hidden = findings.length - shown.length;
  if (hidden > 0) problems.push({ where: origin.where, severity: 'error', message: `${hidden} more problems` });
  return problems;
}

const join = (path: string, field: string): string =>
  path === '' || field === '.' ? path || field : `${path}.${field}`;

const NODE_CRITICAL = { priority: 2_000_001_000, priorityClassName: 'system-node-critical' };

/** The API server computes priorities from classes; nobody does that for static pods. */
function priorityWarning({ priority, priorityClassName }: PodSpec): string | undefined {
  if (priority === undefined && !priorityClassName) return undefined;
  if (priority === undefined) return 'priorityClassName without priority is not used, and a mirror pod may be refused';
  if (!priorityClassName) return 'priority without priorityClassName: a mirror pod may be refused';
  return priority === NODE_CRITICAL.priority && priorityClassName === NODE_CRITICAL.priorityClassName
    ? undefined
    : `priority other than ${NODE_CRITICAL.priority} (${NODE_CRITICAL.priorityClassName}): the API may try in vain to evict the mirror pod`;
}

class Reading {
  readonly findings: Finding[] = [];
  readonly #origin: Origin;
  readonly #options: ManifestOptions;
  readonly #pods: Pod[] = [];
  readonly #objects: LocalObject[] = [];

  constructor(origin: Origin, options: ManifestOptions) {
    this.#origin = origin;
    this.#options = options;
  }

  contents(): Omit<ManifestContents, 'problems'> {
    return {
      pods: this.#pods,
      configMaps: this.#objects.filter((o) => o.kind === 'ConfigMap').map((o) => o.object),
      secrets: this.#objects.filter((o) => o.kind === 'Secret').map((o) => o.object),
    };
  }

  warn(item: Item, message: string, field = '.'): void {
    this.findings.push({ item, severity: 'warning', error: { field, kind: 'Invalid', message } });
  }

  add(item: Item): void {
    const { value } = item;
    const head = (typeof value === 'object' && value !== null ? value : {}) as Partial<Record<string, unknown>>;
    const [version, kind] = [head['apiVersion'], head['kind']];
    if (version === 'v1' && kind === 'Pod') return this.#addPod(item);
    if (
      version === 'v1' &&
      (kind === 'PodList' || kind === 'List') &&
      this.#options.lists &&
      Array.isArray(head['items'])
    ) {
      head['items'].forEach((entry: unknown, i) => {
        // Items of a typed list need not repeat their type.
        const typed =
          kind === 'PodList' && typeof entry === 'object' ? { apiVersion: 'v1', kind: 'Pod', ...entry } : entry;
        this.add({ ...item, path: join(item.path, `items[${i}]`), value: typed });
      });
      return;
    }
    if (version === 'v1' && (kind === 'ConfigMap' || kind === 'Secret') && this.#options.localObjects)
      return this.#addObject(item, kind);
    this.#refuseKind(item, version, kind);
  }

  #refuseKind(item: Item, version: unknown, kind: unknown): void {
    if (version === undefined) this.#fail(item, [{ field: 'apiVersion', kind: 'Required', message: 'must be v1' }]);
    if (kind === undefined) this.#fail(item, [{ field: 'kind', kind: 'Required', message: 'must be Pod' }]);
    if (version === undefined || kind === undefined) return;
    const allowed = this.#options.localObjects ? 'Pod, ConfigMap or Secret' : 'Pod';
    this.#fail(item, [
      version === 'v1'
        ? { field: 'kind', kind: 'Invalid', value: kind, message: `must be ${allowed}` }
        : { field: 'apiVersion', kind: 'Invalid', value: version, message: `must be v1, the kind ${allowed}` },
    ]);
  }

  #fail(item: Item, errors: readonly FieldError[]): void {
    for (const error of errors) this.findings.push({ item, error, severity: 'error' });
  }

  #addPod(item: Item): void {
    const read = readPod(item.value);
    for (const field of read.unknownFields) this.warn(item, `unknown field "${field}" is ignored`, field);
    if (read.object === undefined) return this.#fail(item, read.errors);
    const given = read.object;
    if (!given.metadata.name)
      return this.#fail(item, [{ field: 'metadata.name', kind: 'Required', message: 'name is needed for the pod' }]);
    const uid = given.metadata.uid;
    if (uid && !isUsableUid(uid))
      return this.#fail(item, [
        { field: 'metadata.uid', kind: 'Invalid', value: uid, message: "must consist of letters, digits, '-' and '_'" },
      ]);
    const pod = makeStatic(applyPodDefaults(given), item.value, this.#origin, this.#options.nodeName);
    const errors = validatePod(pod);
    if (errors.length > 0) return this.#fail(item, errors);
    const reference = forbiddenReference(pod, this.#options);
    if (reference !== undefined)
      return this.#fail(item, [
        { field: reference.field, kind: 'Forbidden', message: `static pods may not reference ${reference.what}` },
      ]);
    const priority = priorityWarning(pod.spec);
    if (priority !== undefined) this.warn(item, priority, 'spec.priorityClassName');
    this.#pods.push(pod);
  }

  #addObject(item: Item, kind: 'ConfigMap' | 'Secret'): void {
    const read = readLocalObject(item.value, kind);
    for (const field of read.unknownFields) this.warn(item, `unknown field "${field}" is ignored`, field);
    if (read.object === undefined) this.#fail(item, read.errors);
    else this.#objects.push(read.object);
  }
}
