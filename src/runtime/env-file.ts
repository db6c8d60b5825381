// The file format of `fileKeyRef`: one KEY='value' a line, comments and blank lines allowed.
import { goQuote } from '../core/downward.ts';
import { KubeletError } from '../lib/errors.ts';

const LINE = /^\s*([^='\s#][^='\s]*)\s*=\s*'([^']*)'\s*$/;

/** The value of one key, or undefined. A line of any other form makes the file invalid. */
export function envFileValue(text: string, key: string, file: string): string | undefined {
  let value: string | undefined;
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
    const match = LINE.exec(line);
    if (match === null)
      throw new KubeletError('invalid', `environment file ${goQuote(file)} has an invalid line ${i + 1}`);
    if (match[1] === key) value = match[2];
  }
  return value;
}
