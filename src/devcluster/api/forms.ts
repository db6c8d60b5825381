// The forms an object can be shown in, chosen by the Accept header: as it is, as metadata only, as a row of a table;
// events also as the newer events.k8s.io type.
import { notAcceptable } from './api-error.ts';
import { toNewEvent } from './event-conversion.ts';
import type { ApiObject, Json } from './objects.ts';
import { apiVersionOf, type ResourceType } from './resources.ts';
import type { StoredObject } from './store.ts';
import { columnsOf, tableRow, type IncludeObject } from './table.ts';
import type { Form } from './watch-hub.ts';

export type ListMeta = { resourceVersion: string; continue?: string; remainingItemCount?: number };

export interface ListForm extends Form {
  readonly contentType: string;
  renderList(items: readonly StoredObject[], meta: ListMeta): string;
}

class PlainForm implements ListForm {
  readonly name: string = 'plain';
  readonly contentType = 'application/json';
  protected readonly type: ResourceType;
  readonly #prefix: string;

  constructor(type: ResourceType) {
    this.type = type;
    this.#prefix = `{"kind":"${type.kind}","apiVersion":"${apiVersionOf(type)}",`;
  }

  render(stored: StoredObject): string {
    return stored.text;
  }

  renderList(items: readonly StoredObject[], meta: ListMeta): string {
    const texts = items.map((item) => this.#bare(this.render(item)));
    return `{"kind":"${this.type.kind}List","apiVersion":"${apiVersionOf(this.type)}","metadata":${JSON.stringify(meta)},"items":[${texts.join(',')}]}`;
  }

  /** Items of a typed list do not repeat their kind. */
  #bare(text: string): string {
    return text.startsWith(this.#prefix) ? `{${text.slice(this.#prefix.length)}` : text;
  }
}

class NewEventForm extends PlainForm {
  override readonly name = 'events.k8s.io';
  override render(stored: StoredObject): string {
    return JSON.stringify(toNewEvent(stored.object as ApiObject));
  }
}

class MetadataForm implements ListForm {
  readonly name = 'metadata';
  readonly contentType = 'application/json';

  render(stored: StoredObject): string {
    return JSON.stringify({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: stored.object.metadata,
    });
  }

  renderList(items: readonly StoredObject[], meta: ListMeta): string {
    const head = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":${JSON.stringify(meta)}`;
    return `${head},"items":[${items.map((i) => this.render(i)).join(',')}]}`;
  }
}

class TableForm implements ListForm {
  readonly name: string;
  readonly contentType = 'application/json';
  readonly #type: ResourceType;
  readonly #apiVersion: string;
  readonly #include: IncludeObject;
  readonly #nowMs: () => number;

  constructor(type: ResourceType, version: string, include: IncludeObject, nowMs: () => number) {
    this.name = `table ${version} ${include}`;
    this.#type = type;
    this.#apiVersion = `meta.k8s.io/${version}`;
    this.#include = include;
    this.#nowMs = nowMs;
  }

  render(stored: StoredObject): string {
    return this.renderList([stored], { resourceVersion: stored.object.metadata.resourceVersion ?? '' });
  }

  renderList(items: readonly StoredObject[], meta: ListMeta): string {
    const now = this.#nowMs();
    const table: Json = {
      kind: 'Table',
      apiVersion: this.#apiVersion,
      metadata: meta,
      columnDefinitions: columnsOf(this.#type),
      rows: items.map((i) => tableRow(this.#type, i.object as ApiObject, this.#include, now)),
    };
    return JSON.stringify(table);
  }
}

/** A watch in table form has no events for bookmarks to be rows of; they stay plain. */
export function chooseForm(
  type: ResourceType,
  accept: string | undefined,
  query: URLSearchParams,
  nowMs: () => number,
): ListForm {
  const plain = type.group === 'events.k8s.io' ? new NewEventForm(type) : new PlainForm(type);
  if (accept === undefined || accept.trim() === '') return plain;
  for (const range of accept.split(',')) {
    const [media = '', ...parameters] = range.split(';').map((p) => p.trim());
    const parameter = new Map(parameters.map((p) => p.split('=', 2) as [string, string]));
    if (!['application/json', 'application/*', '*/*'].includes(media)) continue;
    const as = parameter.get('as');
    if (as === undefined) return plain;
    if (parameter.get('g') !== 'meta.k8s.io') continue;
    const version = parameter.get('v') ?? 'v1';
    if (as === 'Table' && (version === 'v1' || version === 'v1beta1')) {
      const include = query.get('includeObject') ?? 'Metadata';
      return new TableForm(type, version, include === 'Object' || include === 'None' ? include : 'Metadata', nowMs);
    }
    if ((as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') && version === 'v1')
      return new MetadataForm();
  }
  throw notAcceptable();
}
