// Hides what may be a credential before the configuration is logged or served.
import { MASK, maskUrl } from '../lib/http/mask-url.ts';
import type { Json, JsonObject } from './schema.ts';

/** The v1beta1 form with the values of static pod URL headers and the user information of URLs hidden. */
export function maskConfig(json: JsonObject): JsonObject {
  const out: Record<string, Json> = { ...json };
  const headers = json['staticPodURLHeader'];
  if (typeof headers === 'object' && headers !== null)
    out['staticPodURLHeader'] = Object.fromEntries(Object.keys(headers).map((name) => [name, [MASK]]));
  const url = json['staticPodURL'];
  if (typeof url === 'string') out['staticPodURL'] = maskUrl(url);
  return out;
}
