// Fits the parts of this folder to the configuration: who asks the API server about callers, and the serving certificate.
import type { Environment } from '../config/environment.ts';
import type { NodeAddress } from '../core/node.ts';
import { certificateMetrics } from './certificate-metrics.ts';
import { AccessReviewer, TokenReviewer, type ReviewClient, type ReviewObserver } from './reviews.ts';
import { openServing, type ServingSource } from './serving-source.ts';
import type { SigningClient } from './signing-request.ts';
import { TokenCacheMetrics } from './token-cache-metrics.ts';

export type Reviews = { readonly tokens: TokenReviewer; readonly access: AccessReviewer };

/** Undefined without an API server: nobody can be asked. */
export function createReviews(
  { clock, config, registry }: Pick<Environment, 'clock' | 'config' | 'registry'>,
  client: ReviewClient | undefined,
  observe: ReviewObserver,
): Reviews | undefined {
  if (client === undefined) return undefined;
  const { webhook } = config.authorization;
  const cached = new TokenCacheMetrics(clock, registry);
  const cacheTtlMs = config.authentication.webhook.cacheTTLMs;
  return {
    tokens: new TokenReviewer({ client, clock, observe, cached }, { cacheTtlMs }),
    access: new AccessReviewer(
      { client, clock, observe },
      { allowedTtlMs: webhook.cacheAuthorizedTTLMs, deniedTtlMs: webhook.cacheUnauthorizedTTLMs },
    ),
  };
}

export async function createServing(
  env: Environment,
  deps: {
    readonly client: SigningClient | undefined;
    readonly addresses: () => readonly NodeAddress[];
    readonly onChange: () => void;
  },
): Promise<ServingSource> {
  const { clock, config, flags, gates, nodeName, registry } = env;
  const { client, addresses, onChange } = deps;
  const serving = await openServing(
    {
      clock,
      log: env.log.child({ component: 'serving-certificate' }),
      ...(client === undefined ? {} : { client: () => client }),
      addresses,
      onChange,
    },
    {
      certFile: config.tlsCertFile,
      keyFile: config.tlsPrivateKeyFile,
      bootstrap: config.serverTLSBootstrap,
      allowDnsOnly: gates.enabled('AllowDNSOnlyNodeCSR'),
      reload: gates.enabled('ReloadKubeletServerCertificateFile'),
      certDir: flags.certDir,
      nodeName,
    },
  );
  if (serving.manager !== undefined) certificateMetrics(registry, { clock, server: serving.manager });
  return serving;
}
