// Values of environment variables are bytes, and those of Secrets and files need not be text. They are handled as text in
// which a byte that is part of no character is a lone surrogate (U+DC80 to U+DCFF), and sent as the bytes they were. Pure.
import { isUtf8 } from 'node:buffer';

const ESCAPE = 0xdc00;
/** The smallest code point of a sequence of two, three and four bytes. */
const SMALLEST = [0x80, 0x800, 0x10000];

export function envText(bytes: Uint8Array): string {
  if (isUtf8(bytes)) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
  // No byte makes more than one code unit.
  const units = Buffer.allocUnsafe(bytes.length * 2);
  let end = 0;
  const put = (unit: number): void => void (end = units.writeUInt16LE(unit, end));
  for (let at = 0; at < bytes.length;) {
    const length = sequenceLength(bytes, at);
    const point = length === 0 ? ESCAPE + (bytes[at] ?? 0) : pointOf(bytes, at, length);
    if (point < 0x10000) put(point);
    else {
      put(0xd800 + ((point - 0x10000) >> 10));
      put(0xdc00 + ((point - 0x10000) & 0x3ff));
    }
    at += length === 0 ? 1 : length;
  }
  return units.toString('utf16le', 0, end);
}

/** Of the character that begins at `at`; 0 if none does. */
function sequenceLength(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return 1;
  const length =
    first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  if (length === 0 || at + length > bytes.length) return 0;
  for (let i = 1; i < length; i++) if (((bytes[at + i] ?? 0) & 0xc0) !== 0x80) return 0;
  const point = pointOf(bytes, at, length);
  const valid = point >= (SMALLEST[length - 2] ?? 0) && point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
  return valid ? length : 0;
}

function pointOf(bytes: Uint8Array, at: number, length: number): number {
  let point = (bytes[at] ?? 0) & (length === 1 ? 0x7f : 0xff >> (length + 1));
  for (let i = 1; i < length; i++) point = (point << 6) | ((bytes[at + i] ?? 0) & 0x3f);
  return point;
}

export function envBytes(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text);
  const out = Buffer.allocUnsafe(Buffer.byteLength(text));
  let end = 0;
  // Between escaped bytes the text is well formed.
  for (let at = 0; at < text.length;) {
    const escaped = nextEscape(text, at);
    end += out.write(text.slice(at, escaped), end, 'utf8');
    if (escaped < text.length) out[end++] = text.charCodeAt(escaped) - ESCAPE;
    at = escaped + 1;
  }
  return out.subarray(0, end);
}

/** The next lone surrogate that stands for a byte, or the end. */
function nextEscape(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    const byte = unit - ESCAPE;
    if (unit >= 0xd800 && unit < 0xdc00 && isLow(text.charCodeAt(at + 1))) at++;
    else if (byte >= 0x80 && byte <= 0xff) return at;
  }
  return text.length;
}

const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;
