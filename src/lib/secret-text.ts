// Parsers of files and answers that hold credentials. Their errors say where and why, and never quote the text, which the
// messages of the libraries do.
import { LineCounter, parseDocument } from 'yaml';
import { KubeletError } from './errors.ts';

/** Throws `invalid` with line, column and reason. */
export function parseSecretYaml(text: string): unknown {
  const lines = new LineCounter();
  // A warning would go to stderr by itself, and quote keys.
  const document = parseDocument(text, { prettyErrors: false, lineCounter: lines, logLevel: 'error' });
  const [error] = document.errors;
  if (error !== undefined) {
    const { line, col } = lines.linePos(error.pos[0]);
    // The message may quote the text; the code is one of a list.
    throw new KubeletError('invalid', `line ${line}, column ${col}: ${error.code.toLowerCase().replaceAll('_', ' ')}`);
  }
  try {
    return document.toJS();
  } catch {
    throw new KubeletError('invalid', 'it has too many aliases, or one without an anchor'); // no cause: it names the alias
  }
}

/** Throws `invalid`. */
export function parseSecretJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new KubeletError('invalid', 'not JSON'); // no cause: it quotes the text
  }
}
