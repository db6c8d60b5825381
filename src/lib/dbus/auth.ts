// The conversation before the first message: SASL EXTERNAL, by the user the kernel tells the bus we are. Lines only, no I/O.
import { KubeletError } from '../errors.ts';

const MAX_LINE = 16 * 1024;

export type AuthStep = { readonly send: string; readonly rest?: Buffer };

export class AuthClient {
  readonly #uid: number;
  readonly #descriptors: boolean;
  #state: 'waitOk' | 'waitAgree' | 'done' = 'waitOk';
  #buffer = Buffer.alloc(0);

  constructor(uid: number, descriptors: boolean) {
    this.#uid = uid;
    this.#descriptors = descriptors;
  }

  /** The first words: a NUL, with which old systems pass credentials, and who we are. */
  greeting(): string {
    return `\0AUTH EXTERNAL ${Buffer.from(String(this.#uid)).toString('hex')}\r\n`;
  }

  /** What to send after this answer. With the last of it come bytes that belong to messages already. Throws `denied`. */
  receive(chunk: Buffer): AuthStep {
    this.#buffer = Buffer.concat([this.#buffer, chunk]);
    const end = this.#buffer.indexOf('\r\n');
    if (end < 0) {
      if (this.#buffer.length > MAX_LINE) throw new KubeletError('invalid', 'D-Bus authentication: endless line');
      return { send: '' };
    }
    const line = this.#buffer.toString('latin1', 0, end);
    this.#buffer = this.#buffer.subarray(end + 2);
    return this.#answer(line);
  }

  #answer(line: string): AuthStep {
    const [command] = line.split(' ');
    if (this.#state === 'waitOk' && command === 'OK') {
      if (!this.#descriptors) return this.#done();
      this.#state = 'waitAgree';
      return { send: 'NEGOTIATE_UNIX_FD\r\n' };
    }
    if (this.#state === 'waitAgree' && command === 'AGREE_UNIX_FD') return this.#done();
    if (this.#state === 'waitAgree')
      throw new KubeletError(
        'unimplemented',
        `D-Bus authentication: no descriptors are passed here (${line.slice(0, 64)})`,
      );
    throw new KubeletError('denied', `D-Bus authentication refused: ${line.slice(0, 64)}`);
  }

  #done(): AuthStep {
    this.#state = 'done';
    return { send: 'BEGIN\r\n', rest: this.#buffer };
  }
}
