// The front end's files. From source the browser gets TypeScript without its types; a build has them ready.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { builtAsset } from '../lib/built.ts';

export type Asset = { readonly type: string; readonly body: Buffer; readonly tag: string };

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};
const NAME = /^[a-z][a-z0-9-]*\.(html|js|css|svg)$/;

export class Assets {
  readonly #known = new Map<string, Promise<Asset | undefined>>();

  /** Undefined where there is no such file. */
  get(name: string): Promise<Asset | undefined> {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    if (!NAME.test(name)) return Promise.resolve(undefined);
    const loading = load(name);
    this.#known.set(name, loading);
    // A name that does not exist is not remembered: anybody can make up many.
    void loading.then((found) => found === undefined && this.#known.delete(name));
    return loading;
  }
}

async function load(name: string): Promise<Asset | undefined> {
  const text = await textOf(name).catch(() => undefined);
  const type = TYPES[name.split('.').at(-1) ?? ''];
  if (text === undefined || type === undefined) return undefined;
  const tag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 16)}"`;
  return { type, body: Buffer.from(text), tag };
}

async function textOf(name: string): Promise<string> {
  const built = await builtAsset(`page-${name}`, import.meta.url);
  if (built !== undefined) return built;
  const folder = join(import.meta.dirname, 'front');
  if (!name.endsWith('.js')) return readFile(join(folder, name), 'utf8');
  const source = await readFile(join(folder, name.replace(/\.js$/, '.ts')), 'utf8');
  return stripTypeScriptTypes(source).replace(/(from '\.\/[a-z-]+)\.ts';/g, "$1.js';");
}
