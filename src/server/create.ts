// Fits the parts of this folder together: the main port with its guard, the read-only port, the pod resources socket, and
// the socket of the command line.
import type { KubeletConfig } from '../config/config-fields.ts';
import type { Environment } from '../config/environment.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { NodePage } from '../page/page.ts';
import { accessMetrics } from './access-metrics.ts';
import { accessOptions, buildGuard, loopbackOnly, type AccessDeps } from './access.ts';
import { ClientCaFile } from './client-ca.ts';
import { mainEndpoint, readOnlyEndpoint, sharedEndpoints, streamEndpoint, type EndpointDeps } from './endpoints.ts';
import { createLocalApis, type LocalApisDeps } from './local-apis.ts';
import { Listener, type TlsSettings } from './listener.ts';
import { nodeSocket } from './node-socket.ts';
import { RequestMetrics } from './request-metrics.ts';
import { tlsSettings } from './tls-settings.ts';

/** The certificate to show; it may change while the port is open. */
export interface Serving {
  current(): { readonly cert: string; readonly key: string } | undefined;
  readonly parts: readonly Runnable[];
}

export type ServerDeps = EndpointDeps & {
  /** The node page, with a port of its own. */
  readonly page: NodePage;
  /** For agents on this node. */
  readonly local: LocalApisDeps;
  /** The API server's word on tokens and permissions, where there is one. */
  readonly reviews: (
    observe: (kind: 'authn' | 'authz', code: string, seconds: number) => void,
  ) => NonNullable<AccessDeps['cluster']> | undefined;
  readonly openServing: (onChange: () => void) => Promise<Serving>;
};

export async function createServer(env: Environment, deps: ServerDeps): Promise<readonly Runnable[]> {
  const { config, clock, registry } = env;
  const local = createLocalApis(env, deps.local);
  if (!config.enableServer) return local;
  const log = env.log.child({ component: 'server' });
  const metrics = new RequestMetrics(clock, registry);
  let main: Listener | undefined;
  const { tls, parts } = await openTls(env, deps, () => main?.renewTls());
  const access = accessOptions(env);
  const seen = accessMetrics(registry);
  const cluster = deps.reviews(seen.reviewed);
  const guard = buildGuard(
    {
      nowMs: () => clock.now(),
      onCertificateLifetime: seen.certificateLifetime,
      ...(cluster === undefined ? {} : { cluster }),
    },
    access,
  );
  const address = loopbackOnly(access, cluster === undefined) ? '127.0.0.1' : config.address;
  const shared = sharedEndpoints(env, deps);
  const streams = streamEndpoint(env, deps);
  const endpoint = mainEndpoint(env, deps, shared, streams);
  main = new Listener(
    { endpoint, guard, log, observe: metrics.observer('readwrite') },
    { name: 'server', address, port: config.port, tls },
  );
  const pages = (await deps.page.ownPorts({ streams, guard })).map((own) =>
    own.optional(new Listener(own.deps, { ...own.options, ...own.tls(tls) })),
  );
  const always = [main, ...parts, ...local, ...pages, nodeSocket(endpoint, { clock, log }, env.flags.rootDir)];
  if (config.readOnlyPort <= 0) return always;
  const readOnly = new Listener(
    { endpoint: readOnlyEndpoint(shared), log, observe: metrics.observer('readonly') },
    { name: 'read-only-server', address, port: config.readOnlyPort },
  );
  return [...always, readOnly];
}

type OpenTls = { readonly tls: () => TlsSettings; readonly parts: readonly Runnable[] };

/** The certificate to show and the CA to hold others' against; both may change while the port is open. */
async function openTls(
  { clock, config, log }: { readonly clock: Clock; readonly config: KubeletConfig; readonly log: Logger },
  deps: Pick<ServerDeps, 'openServing'>,
  onChange: () => void,
): Promise<OpenTls> {
  const { clientCAFile } = config.authentication.x509;
  const clientCa = clientCAFile === '' ? undefined : new ClientCaFile({ clock, log, onChange }, clientCAFile);
  await clientCa?.load();
  const serving = await deps.openServing(onChange);
  const choice = tlsSettings({
    minVersion: config.tlsMinVersion,
    cipherSuites: config.tlsCipherSuites,
    curves: config.tlsCurvePreferences,
  });
  const tls = (): TlsSettings => {
    const pair = serving.current();
    return {
      ...choice,
      ...(pair === undefined ? {} : { cert: pair.cert, key: pair.key }),
      ...(clientCa === undefined ? {} : { ca: clientCa.pem }),
    };
  };
  return { tls, parts: [...serving.parts, ...(clientCa === undefined ? [] : [clientCa])] };
}
