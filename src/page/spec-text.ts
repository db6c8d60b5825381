// A pod's spec as YAML for people, without what may be a secret: values of variables that sound like one, and copies of the
// manifest in annotations. Pure.
import type { Pod } from '../core/pod.ts';
import { SHOWN_VALUE_CHARACTERS } from '../core/bounds.ts';
import { cutTo } from '../lib/text.ts';

const SECRET_NAME = /pass|secret|token|credential|private|api_?key|access_?key|auth/i;
const HIDDEN = '(hidden)';
const DROPPED = new Set(['kubectl.kubernetes.io/last-applied-configuration']);

export function specText(pod: Pod): string {
  const { name, namespace, uid, labels, annotations } = pod.metadata;
  const kept = Object.fromEntries(Object.entries(annotations ?? {}).filter(([key]) => !DROPPED.has(key)));
  const shown = { metadata: { name, namespace, uid, labels, annotations: kept }, spec: withoutSecrets(pod.spec) };
  return yamlOf(shown, 0).trimStart();
}

/** What is cut off is not searched. */
const shownText = (value: string): string => withoutUserInfo(cutTo(value, SHOWN_VALUE_CHARACTERS));

/** `https://user:password@host`, whatever stands around it. */
function withoutUserInfo(text: string): string {
  const userInfo = /[^\s/@]+@/y;
  let out = '';
  let from = 0;
  for (let at = text.indexOf('://'); at >= 0; at = text.indexOf('://', at + 1)) {
    userInfo.lastIndex = at + '://'.length;
    if (!/[a-z0-9+.-]/i.test(text.charAt(at - 1)) || !userInfo.test(text)) continue;
    out += `${text.slice(from, at)}://${HIDDEN}@`;
    from = userInfo.lastIndex;
  }
  return out + text.slice(from);
}

function withoutSecrets(value: unknown): unknown {
  if (typeof value === 'string') return shownText(value);
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (typeof value !== 'object' || value === null) return value;
  const { name, value: text } = value as { name?: unknown; value?: unknown };
  const isHidden = typeof name === 'string' && typeof text === 'string' && text !== '' && SECRET_NAME.test(name);
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, isHidden && key === 'value' ? HIDDEN : withoutSecrets(item)]),
  );
}

const PLAIN = /^[A-Za-z/_][\w./@-]*(:[\w./@-]+)*$/;
const WORDS = /^(true|false|null|yes|no|on|off|~)$/i;

function scalar(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? 'null';
  return PLAIN.test(value) && !WORDS.test(value) ? value : JSON.stringify(value);
}

function yamlOf(value: unknown, depth: number): string {
  const pad = '  '.repeat(depth);
  if (Array.isArray(value)) {
    if (value.length === 0) return ' []\n';
    return `\n${value.map((item) => `${pad}- ${yamlOf(item, depth + 1).trimStart()}`).join('')}`;
  }
  if (typeof value !== 'object' || value === null) return ` ${scalar(value)}\n`;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  if (entries.length === 0) return ' {}\n';
  return `\n${entries.map(([key, item]) => `${pad}${scalar(key)}:${yamlOf(item, depth + 1)}`).join('')}`;
}
