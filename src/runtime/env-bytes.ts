// Values of environment variables are bytes, and those of Secrets and files need not be text. They are handled as text in
// which a byte that is part of no character is a lone surrogate (U+DC80 to U+DCFF), and sent as the bytes they were. Pure.
import { isUtf8 } from 'node:buffer';

const ESCAPE = 0xdc00;
const LONGEST_CHARACTER = 4;

export function envText(bytes: Uint8Array): string {
  if (isUtf8(bytes)) return Buffer.from(bytes).toString('utf8');
  let text = '';
  for (let at = 0; at < bytes.length;) {
    const character = characterAt(bytes, at);
    text += character?.toString('utf8') ?? String.fromCharCode(ESCAPE + (bytes[at] ?? 0));
    at += character?.length ?? 1;
  }
  return text;
}

function characterAt(bytes: Uint8Array, at: number): Buffer | undefined {
  for (let length = 1; length <= LONGEST_CHARACTER && at + length <= bytes.length; length++) {
    const some = bytes.subarray(at, at + length);
    if (isUtf8(some)) return Buffer.from(some);
  }
  return undefined;
}

export function envBytes(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text);
  return Buffer.concat(
    Array.from(text, (character) => {
      const byte = (character.codePointAt(0) ?? 0) - ESCAPE;
      return byte >= 0x80 && byte <= 0xff ? Buffer.from([byte]) : Buffer.from(character);
    }),
  );
}
