// The page's token: made once, kept in a file that only root can read. Whoever shows it gets a cookie made from it; the
// cookie is good as long as the token is, and does not tell it.
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../lib/atomic-file.ts';

const TOKEN_BYTES = 24;
const TOKEN = /^[A-Za-z0-9_-]{32,}$/;

export class PageToken {
  readonly #token: string;
  readonly #cookie: string;

  constructor(token: string) {
    this.#token = token;
    this.#cookie = createHmac('sha256', token).update('node page cookie').digest('base64url');
  }

  get cookie(): string {
    return this.#cookie;
  }

  isToken(given: string): boolean {
    return same(given, this.#token);
  }

  isCookie(given: string): boolean {
    return same(given, this.#cookie);
  }
}

/** Takes the same time whatever is given. */
const same = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

export type OpenedToken = {
  readonly token: PageToken;
  readonly file: string;
  /** Writes the token to its file. Absent when the file has it. */
  readonly keep?: () => Promise<void>;
};

/** A token whose file is missing, damaged or unreadable is made anew. Never rejects: the node does without the file. */
export async function openToken(directory: string): Promise<OpenedToken> {
  const file = join(directory, 'token');
  const known = (await readFile(file, 'utf8').catch(() => '')).trim();
  if (TOKEN.test(known)) return { token: new PageToken(known), file };
  const secret = randomBytes(TOKEN_BYTES).toString('base64url');
  const keep = async (): Promise<void> => {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await writeFileAtomic(file, `${secret}\n`, 0o600);
  };
  const made = { token: new PageToken(secret), file };
  return keep().then(
    () => made,
    () => ({ ...made, keep }),
  );
}
