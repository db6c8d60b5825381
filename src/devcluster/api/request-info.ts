// What a request is about, read from its method and path: the attributes that routing and authorization work with.
import { fieldTerms, pinnedName, type FieldTerm } from './selectors.ts';

export type RequestInfo = {
  /** get, list, watch, create, update, patch, delete, deletecollection; for other paths the lower-case method. */
  readonly verb: string;
  readonly isResource: boolean;
  readonly path: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** What follows the subresource as the client wrote it (`/a%20b/`), empty when nothing does: the path of a proxy. */
  readonly rest: string;
  readonly fieldTerms: readonly FieldTerm[];
};

const METHOD_VERBS: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};
const NAMESPACE_SUBRESOURCES = new Set(['status', 'finalize']);

/** A request about nothing, to be filled in. */
export const NO_REQUEST: RequestInfo = {
  verb: '',
  isResource: false,
  path: '',
  group: '',
  version: '',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
  rest: '',
  fieldTerms: [],
};

export function requestInfo(method: string, path: string, query: URLSearchParams): RequestInfo {
  const parts = path
    .split('/')
    .filter((p) => p !== '')
    .map(decodeURIComponent);
  const other: RequestInfo = { ...NO_REQUEST, verb: method.toLowerCase(), path };
  const isCore = parts[0] === 'api';
  if (!isCore && parts[0] !== 'apis') return other;
  const rest = parts.slice(isCore ? 2 : 3);
  if (rest.length === 0) return other;
  const [group = '', version = ''] = isCore ? ['', parts[1]] : [parts[1], parts[2]];
  return resourceInfo({ ...other, group, version }, method, rest, query);
}

/** The path after its first `segments`, slashes and escapes untouched. */
const pathAfter = (path: string, segments: number): string => path.replace(new RegExp(`^(?:/*[^/]+){${segments}}`), '');

function resourceInfo(base: RequestInfo, method: string, parts: string[], query: URLSearchParams): RequestInfo {
  let verb = METHOD_VERBS[method] ?? '';
  let rest = parts;
  let namespace = '';
  if (rest[0] === 'watch') {
    verb = 'watch';
    rest = rest.slice(1);
  }
  if (rest[0] === 'namespaces' && rest.length > 1) {
    namespace = rest[1] ?? '';
    if (rest.length > 2 && !NAMESPACE_SUBRESOURCES.has(rest[2] ?? '')) rest = rest.slice(2);
  }
  const [resource = '', name = '', subresource = '', ...tail] = rest;
  const terms = fieldTerms(query.get('fieldSelector') ?? '');
  if (name === '') {
    if (verb === 'get') verb = isTrue(query.get('watch')) ? 'watch' : 'list';
    else if (verb === 'delete') verb = 'deletecollection';
  } else if (verb === 'get' && subresource === '' && isTrue(query.get('watch'))) verb = 'watch';
  const collection = verb === 'list' || verb === 'watch' || verb === 'deletecollection';
  return {
    ...base,
    verb,
    isResource: true,
    resource,
    subresource,
    namespace,
    name: name === '' && collection ? (pinnedName(terms) ?? '') : name,
    rest:
      subresource === 'proxy' ? pathAfter(base.path, base.path.split('/').filter(Boolean).length - tail.length) : '',
    fieldTerms: name !== '' && collection ? [...terms, { field: 'metadata.name', equal: true, value: name }] : terms,
  };
}

export const isTrue = (value: string | null): boolean => value === 'true' || value === '1' || value === '';
