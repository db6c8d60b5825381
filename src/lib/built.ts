// What the build knows and the source does not. The names are filled in by scripts/build.ts; run from source they are
// not defined at all.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

declare const KUBELET_TS_VERSION: string | undefined;
declare const KUBELET_TS_COMMIT: string | undefined;
declare const KUBELET_TS_FORM: 'files' | 'executable' | undefined;

/** The package's version, where package.json is not at hand. */
export const builtVersion: string | undefined = typeof KUBELET_TS_VERSION === 'string' ? KUBELET_TS_VERSION : undefined;

/** The commit it was built from. */
export const builtCommit: string | undefined = typeof KUBELET_TS_COMMIT === 'string' ? KUBELET_TS_COMMIT : undefined;

/** `source`: TypeScript as it is; `files`: bundled, parts beside each other; `executable`: all in one program. */
const builtForm: 'source' | 'files' | 'executable' = typeof KUBELET_TS_FORM === 'string' ? KUBELET_TS_FORM : 'source';

/** A part that runs in a thread of its own, named by its file beside `from`: its file, or its text. */
export function partProgram(name: string, from: string): { readonly program: string | URL; readonly isText: boolean } {
  if (builtForm !== 'executable') return { program: new URL(fileOf(name), from), isText: false };
  return { program: process.getBuiltinModule('node:sea').getAsset(name, 'utf8'), isText: true };
}

/** The command that runs a part in a process of its own; its arguments come after. */
export function partCommand(name: string, from: string): readonly string[] {
  if (builtForm === 'executable') return [process.execPath, name];
  return [process.execPath, '--no-warnings', fileURLToPath(new URL(fileOf(name), from))];
}

/** A file that the build has put beside the program; undefined from source. */
export async function builtAsset(name: string, from: string): Promise<string | undefined> {
  if (builtForm === 'source') return undefined;
  if (builtForm === 'executable') return process.getBuiltinModule('node:sea').getAsset(name, 'utf8');
  return readFile(fileURLToPath(new URL(`./${name}`, from)), 'utf8');
}

const fileOf = (name: string): string => `./${name}.${builtForm === 'source' ? 'ts' : 'mjs'}`;
