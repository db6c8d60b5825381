// From a path to what answers it. Everything below /api and /apis is a resource; the rest is a handful of fixed paths.
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../lib/clock.ts';
import { ApiError, methodNotAllowed, noSuchPath } from './api-error.ts';
import type { Authenticator } from './auth/authenticate.ts';
import type { TokenIssuer } from './auth/tokens.ts';
import {
  aggregatedDiscovery,
  aggregatedVersion,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersions,
  METRICS_GROUP,
  VERSION,
} from './discovery.ts';
import {
  contextOf,
  mediaType,
  parseDocument,
  readBody,
  readObject,
  sendJson,
  sendText,
  type Exchange,
} from './exchange.ts';
import { mergePatch } from './json-patch.ts';
import type { KubeletProxy } from './kubelet-proxy.ts';
import { metricsOf } from './metrics-api.ts';
import { ObjectHandlers } from './object-handlers.ts';
import { isJson, type ApiObject } from './objects.ts';
import { openapiV2, openapiV3Document, openapiV3Index } from './openapi.ts';
import type { Registry } from './registry.ts';
import { findResource, type ResourceType } from './resources.ts';
import { answerReview, isReview } from './reviews.ts';
import { bindPod, evictPod, requestToken, scaleOf, setScale } from './subresources.ts';
import type { WatchHub } from './watch-hub.ts';

export type RouterDeps = {
  readonly registry: Registry;
  readonly hub: WatchHub;
  readonly clock: Clock;
  readonly authenticator: Authenticator;
  readonly tokens: TokenIssuer;
  readonly proxy: KubeletProxy;
  readonly address: () => string;
};

/** The path of a namespace names it twice, as object and as scope; only authorization wants the second. */
const inScope = (exchange: Exchange): Exchange =>
  exchange.info.resource === 'namespaces' ? { ...exchange, info: { ...exchange.info, namespace: '' } } : exchange;

const PROXIED = new Set(['log', 'exec', 'attach', 'portforward', 'proxy']);

export class Router {
  readonly #deps: RouterDeps;
  readonly #objects: ObjectHandlers;

  constructor(deps: RouterDeps) {
    this.#deps = deps;
    this.#objects = new ObjectHandlers(deps);
  }

  get objects(): ObjectHandlers {
    return this.#objects;
  }

  async route(given: Exchange): Promise<void> {
    if (!given.info.isResource) return this.#fixedPath(given);
    const exchange = inScope(given);
    const { info } = exchange;
    if (info.group === METRICS_GROUP.group)
      return sendJson(
        exchange.response,
        200,
        await metricsOf(this.#deps.registry.store, this.#deps.proxy, this.#deps.clock, info),
      );
    const type = findResource(info.group, info.version, info.resource);
    if (type === undefined) throw noSuchPath();
    if (type.namespaced && info.namespace === '' && !['list', 'watch', 'deletecollection'].includes(info.verb))
      throw methodNotAllowed();
    if (isReview(type)) return this.#review(exchange, type);
    const sub = type.subresources.find((s) => s.name === info.subresource);
    if (info.subresource === '') {
      if (!type.verbs.includes(info.verb)) throw methodNotAllowed();
      return this.#objects.handle(exchange, type);
    }
    if (sub === undefined) throw noSuchPath();
    if (!sub.verbs.includes(info.verb)) throw methodNotAllowed();
    if (PROXIED.has(info.subresource)) return this.#deps.proxy.serve(exchange, type);
    return this.#subresource(exchange, type);
  }

  async #review(exchange: Exchange, type: ResourceType): Promise<void> {
    if (exchange.info.verb !== 'create') throw methodNotAllowed();
    const { authenticator, registry } = this.#deps;
    const body = await readObject(exchange.request);
    const deps = { store: registry.store, authenticator };
    sendJson(exchange.response, 201, answerReview(deps, type, exchange.user, exchange.info.namespace, body));
  }

  async #subresource(exchange: Exchange, type: ResourceType): Promise<void> {
    const { info, response, request } = exchange;
    const { registry, tokens } = this.#deps;
    switch (info.subresource) {
      case 'binding':
        return sendJson(
          response,
          201,
          bindPod(registry, info.namespace, info.name, await readObject(request), contextOf(exchange)),
        );
      case 'eviction':
        return sendJson(
          response,
          201,
          evictPod(registry, info.namespace, info.name, await readObject(request), contextOf(exchange)),
        );
      case 'token':
        return sendJson(
          response,
          201,
          requestToken(registry, tokens, info.namespace, info.name, await readObject(request), exchange.user),
        );
      case 'scale':
        return this.#scale(exchange, type);
      default:
        return this.#objects.handle(exchange, type);
    }
  }

  async #scale(exchange: Exchange, type: ResourceType): Promise<void> {
    const { info, request, response } = exchange;
    const { registry } = this.#deps;
    const current = scaleOf(registry.get(type, info.namespace, info.name).object as ApiObject);
    if (info.verb === 'get') return sendJson(response, 200, current);
    const body =
      info.verb === 'patch'
        ? mergePatch(current, parseDocument((await readBody(request)).toString(), mediaType(request)))
        : await readObject(request);
    const scale = isJson(body) ? body : {};
    sendJson(response, 200, setScale(registry, type, info.namespace, info.name, scale, contextOf(exchange)));
  }

  #fixedPath(exchange: Exchange): void {
    const { info, response, request } = exchange;
    const path = info.path.length > 1 ? info.path.replace(/\/+$/, '') : info.path;
    if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed();
    if (/^\/(healthz|livez|readyz)(\/.*)?$/.test(path))
      return sendText(response, 200, 'ok', 'text/plain; charset=utf-8');
    if (path === '/version') return sendJson(response, 200, VERSION);
    if (path === '/openapi/v2') return openapiV2(request, response);
    if (path === '/openapi/v3') return sendJson(response, 200, openapiV3Index());
    if (path.startsWith('/openapi/v3/')) {
      const document = openapiV3Document(path.slice('/openapi/v3/'.length));
      if (document === undefined) throw noSuchPath();
      return sendText(response, 200, document);
    }
    return this.#discovery(exchange, path, response);
  }

  #discovery(exchange: Exchange, path: string, response: ServerResponse): void {
    const version = aggregatedVersion(exchange.request);
    if ((path === '/api' || path === '/apis') && version !== undefined) {
      const document = aggregatedDiscovery(version, path === '/api' ? 'api' : 'apis');
      const type = `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
      return sendText(response, 200, JSON.stringify(document), type);
    }
    if (path === '/api') return sendJson(response, 200, apiVersions(this.#deps.address()));
    if (path === '/apis') return sendJson(response, 200, apiGroupList());
    if (path === '/')
      return sendJson(response, 200, {
        paths: ['/api', '/apis', '/healthz', '/openapi/v2', '/openapi/v3', '/version'],
      });
    const [root, group = '', groupVersion = ''] = path.slice(1).split('/');
    const found =
      root === 'api'
        ? apiResourceList('', group)
        : root === 'apis'
          ? groupVersion === ''
            ? apiGroup(group)
            : apiResourceList(group, groupVersion)
          : undefined;
    if (found === undefined)
      throw new ApiError(404, 'NotFound', 'the server could not find the requested resource', {});
    sendJson(response, 200, found);
  }
}
