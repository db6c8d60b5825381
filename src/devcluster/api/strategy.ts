// What a resource adds to the common life of objects: server-side defaults, validation, what an update may change.
import type { Findings } from '../../core/validation/field-error.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ApiObject, Json } from './objects.ts';
import type { ObjectStore } from './store.ts';

export type User = {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
};

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

export type RequestContext = {
  readonly user: User;
  readonly dryRun: boolean;
  /** What to do about fields nobody knows. */
  readonly fieldValidation: FieldValidation;
  /** Sent back as Warning headers. */
  readonly warnings: string[];
  /** Who owns what this write changes; writes of the server itself change no owner. */
  readonly fieldManager?: string;
  /** The owners after an apply, which works them out itself. */
  readonly managedFields?: readonly Json[];
};

/** What a strategy may look at besides the object itself. */
export type World = { readonly store: ObjectStore; readonly clock: Clock };

export interface Strategy {
  /** Brings a body into the resource's shape and fills in defaults that depend on nothing but the object. */
  decode?(draft: ApiObject, context: RequestContext): ApiObject;
  /** Fills in what the server decides or defaults. Throws an ApiError to refuse. */
  prepareCreate?(draft: ApiObject, world: World, context: RequestContext): void;
  validate?(f: Findings, object: ApiObject, world: World): void;
  /** Brings a new version into shape; `subresource` is '' for the object itself. */
  prepareUpdate?(draft: ApiObject, old: ApiObject, world: World, subresource: string, context: RequestContext): void;
  validateUpdate?(f: Findings, object: ApiObject, old: ApiObject, world: World, subresource: string): void;
  /** Grace of a first deletion; undefined for resources that go at once. */
  graceSeconds?(object: ApiObject, asked: number | undefined): number;
  /** Whether something beside finalizers keeps a deleted object alive. */
  keepsDeleted?(object: ApiObject): boolean;
  /** A deletion was accepted and the object stays for now. */
  markDeleting?(draft: ApiObject): void;
  /** A DELETE answers with the object instead of a Status. */
  readonly returnsDeleted?: boolean;
  /** `validate` looks at the metadata too. */
  readonly validatesMetadata?: boolean;
  /** Names may hold anything a path segment can (RBAC). */
  readonly looseNames?: boolean;
}
