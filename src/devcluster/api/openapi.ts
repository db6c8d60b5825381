// OpenAPI for kubectl: which kinds can be patched with fieldValidation and dryRun, and, in version 3, what fields they have.
// Version 2, which only kubectl before 1.27 reads, has no schemas: it leaves validation to the server then.
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from './api-error.ts';
import { sendText } from './exchange.ts';
import type { Json } from './objects.ts';
import { field, text } from './openapi-protobuf.ts';
import { groupVersions, RESOURCES, type ResourceType } from './resources.ts';
import { kindSchemaName, schemasOf } from './schema/openapi-schemas.ts';

const PROTOBUF = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
const rootOf = (gv: { group: string; version: string }): string =>
  gv.group === '' ? `api/${gv.version}` : `apis/${gv.group}/${gv.version}`;

const collectionOf = (type: ResourceType): string =>
  `/${rootOf(type)}/${type.namespaced ? 'namespaces/{namespace}/' : ''}${type.resource}`;
const pathOf = (type: ResourceType): string => `${collectionOf(type)}/{name}`;
const kindOf = ({ group, version, kind }: ResourceType): Json => ({ group, version, kind });
const PARAMETERS = ['dryRun', 'fieldManager', 'fieldValidation', 'force'];

const patchable = (): ResourceType[] => RESOURCES.filter((r) => r.verbs.includes('patch'));

const operationOf = (type: ResourceType, action: string, parameters: readonly Json[]): Json => ({
  operationId: `${action}${type.group}${type.version}${type.kind}`,
  parameters,
  responses: { '200': { description: 'OK' } },
  'x-kubernetes-action': action,
  'x-kubernetes-group-version-kind': kindOf(type),
});

const INFO = { title: 'Kubernetes', version: 'v1.36.4' };

const documents = new Map<string, string>();

/** Made when it is first asked for: most clients never do. */
export function openapiV3Document(root: string): string | undefined {
  const found = documents.get(root);
  const gv = groupVersions().find((one) => rootOf(one) === root);
  if (found !== undefined || gv === undefined) return found;
  const parameters = PARAMETERS.map((name) => ({ name, in: 'query', schema: { type: 'string' } }));
  const paths: Json = {};
  for (const type of RESOURCES.filter((r) => r.group === gv.group && r.version === gv.version)) {
    const responses = answerOf(type);
    const operation = (action: string): Json => ({ ...operationOf(type, action, parameters), responses });
    if (type.verbs.includes('create')) paths[collectionOf(type)] = { post: operation('post') };
    if (type.verbs.includes('patch')) paths[pathOf(type)] = { patch: operation('patch') };
  }
  const schemas = schemasOf(gv.group, gv.version);
  const document = JSON.stringify({ openapi: '3.0.0', info: INFO, paths, components: { schemas } });
  documents.set(root, document);
  return document;
}

const answerOf = (type: ResourceType): Json => ({
  '200': {
    description: 'OK',
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${kindSchemaName(type)}` } } },
  },
});

export const openapiV3Index = (): Json => ({
  paths: Object.fromEntries(
    groupVersions().map((gv) => {
      const root = rootOf(gv);
      const hash = createHash('sha256')
        .update(openapiV3Document(root) ?? '')
        .digest('hex')
        .toUpperCase();
      return [root, { serverRelativeURL: `/openapi/v3/${root}?hash=${hash}` }];
    }),
  ),
});

const v2Json = JSON.stringify({
  swagger: '2.0',
  info: INFO,
  paths: Object.fromEntries(
    patchable().map((r) => [
      pathOf(r),
      {
        patch: operationOf(
          r,
          'patch',
          PARAMETERS.map((name) => ({ name, in: 'query', type: 'string', uniqueItems: true })),
        ),
      },
    ]),
  ),
  definitions: {},
});

export function openapiV2(request: IncomingMessage, response: ServerResponse): void {
  const accept = request.headers.accept ?? '*/*';
  if (accept.includes(PROTOBUF) || accept.includes('application/com.github.proto-openapi.spec.v2.v1.0+protobuf')) {
    const bytes = v2Protobuf();
    response.setHeader('Content-Type', 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf');
    response.setHeader('Content-Length', bytes.length);
    response.end(bytes);
  } else if (/application\/json|\*\/\*/.test(accept)) sendText(response, 200, v2Json);
  else throw new ApiError(406, 'NotAcceptable', 'only the following media types are accepted: application/json', {});
}

let encoded: Buffer | undefined;

/** The same document in the form older kubectl asks for: gnostic's openapi_v2.Document. */
function v2Protobuf(): Buffer {
  encoded ??= Buffer.concat([
    text(1, '2.0'),
    field(2, text(1, INFO.title), text(2, INFO.version)),
    field(8, ...patchable().map((r) => field(2, text(1, pathOf(r)), field(2, field(8, operation(r)))))),
  ]);
  return encoded;
}

function operation(type: ResourceType): Buffer {
  const parameters = PARAMETERS.map((name) =>
    field(8, field(1, field(2, field(3, text(2, 'query'), text(4, name), text(6, 'string'))))),
  );
  const { group, version, kind } = type;
  const extension = (name: string, yaml: string): Buffer => field(13, text(1, name), field(2, text(2, yaml)));
  return Buffer.concat([
    text(5, `patch${group}${version}${kind}`),
    ...parameters,
    extension('x-kubernetes-action', 'patch\n'),
    extension('x-kubernetes-group-version-kind', `group: "${group}"\nkind: ${kind}\nversion: ${version}\n`),
  ]);
}
