// What goes into a request's header. Values come from pod specs: what HTTP forbids is refused as an error, and text is sent
// as UTF-8, as Go's client does. Bytes that came in with another request (`latin1`) go on as they are.
import { KubeletError } from '../errors.ts';

export type HeaderFields = Readonly<Record<string, string | readonly string[]>>;
export type FieldText = 'utf8' | 'latin1';

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// oxlint-disable-next-line no-control-regex -- control bytes are what is looked for
const FORBIDDEN = /[\x00-\x08\x0a-\x1f\x7f]/;
/** How long a message is and how it is framed is the client's to say. */
const FRAMING = new Set(['content-length', 'transfer-encoding', 'trailer']);

/** The fields as Node writes them. Throws `invalid` for what may not stand in a header. */
export function encodeFields(fields: HeaderFields, text: FieldText): Record<string, string | string[]> {
  const encoded = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of Object.entries(fields)) {
    if (!NAME.test(name)) throw new KubeletError('invalid', `invalid header field name ${JSON.stringify(name)}`);
    if (FRAMING.has(name.toLowerCase())) continue;
    encoded[name] = typeof value === 'string' ? bytesOf(name, value, text) : value.map((v) => bytesOf(name, v, text));
  }
  return encoded;
}

function bytesOf(name: string, value: string, text: FieldText): string {
  if (FORBIDDEN.test(value)) throw new KubeletError('invalid', `invalid header field value for "${name}"`);
  return Buffer.from(value, text).toString('latin1');
}
