// Which pod a request through a service's proxy goes to. Pure.
import { ApiError, notFound } from './api-error.ts';
import { numberAt, recordsAt, textAt, type Json } from './objects.ts';
import { resourceNamed } from './resources.ts';

export type NamedService = {
  readonly name: string;
  /** A name, a number, or nothing for the port without a name. */
  readonly port: string;
  readonly service: Json | undefined;
  readonly endpoints: Json | undefined;
};

const unavailable = (message: string): ApiError => new ApiError(503, 'ServiceUnavailable', message);

/** `random` chooses among the pods behind the service, as 0 ≤ random < 1. */
export function serviceTarget(asked: NamedService, random: number): { readonly host: string; readonly port: number } {
  const name = portName(asked);
  if (asked.endpoints === undefined) throw notFound(resourceNamed('endpoints'), asked.name);
  const found = recordsAt(asked.endpoints, 'subsets').flatMap((subset) =>
    recordsAt(subset, 'ports')
      .filter((port) => textAt(port, 'name') === name)
      .flatMap((port) =>
        recordsAt(subset, 'addresses').map((a) => ({ host: textAt(a, 'ip'), port: numberAt(port, 'port') ?? 0 })),
      ),
  );
  const target = found[Math.floor(random * found.length)];
  if (target === undefined) throw unavailable(`no endpoints available for service "${asked.name}"`);
  return target;
}

/** Endpoints know ports by their names. */
function portName({ name, port, service }: NamedService): string {
  if (!/^\d+$/.test(port)) return port;
  if (service === undefined) throw notFound(resourceNamed('services'), name);
  const found = recordsAt(service, 'spec', 'ports').find((p) => numberAt(p, 'port') === Number(port));
  if (found === undefined) throw unavailable(`no service port ${port} found for service "${name}"`);
  return textAt(found, 'name');
}
