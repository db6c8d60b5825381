// Paths that must stay inside something.
import type { Findings } from './field-error.ts';

const MAX_FILE_MODE = 0o777;

export function checkNoBacksteps(f: Findings, field: string, path: string): void {
  if (path.split('/').includes('..')) f.invalid(field, path, "must not contain '..'");
}

/** Relative, and never up. */
export function checkDescending(f: Findings, field: string, path: string): void {
  if (path.startsWith('/')) f.invalid(field, path, 'must be a relative path');
  checkNoBacksteps(f, field, path);
}

/** Also not one of the names volumes keep for themselves (`..data`). */
export function checkNonReserved(f: Findings, field: string, path: string): void {
  checkDescending(f, field, path);
  if (path.startsWith('..') && !path.startsWith('../')) f.invalid(field, path, "must not start with '..'");
}

export function checkFileMode(f: Findings, field: string, mode: number | undefined): void {
  if (mode !== undefined && (mode < 0 || mode > MAX_FILE_MODE))
    f.invalid(field, mode, 'must be a number between 0 and 0777 (octal), both inclusive');
}
