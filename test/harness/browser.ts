// A real Chromium without a window, driven over its debugging protocol. One profile per browser, taken away with it.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until, untilSeen } from './until.ts';
import { removeFolder, temporaryFolder } from './temporary-folder.ts';

const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export const browserProgram = (): string | undefined => PROGRAMS.find((path) => existsSync(path));

type Reply = {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
};
type Waiting = { readonly resolve: (value: unknown) => void; readonly reject: (err: Error) => void };

/** One page of the browser. */
export class BrowserPage {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, Waiting>();
  /** What the page complained about: exceptions, refused loads. */
  readonly complaints: string[] = [];
  #nextId = 1;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', (event) => this.#receive(JSON.parse(String(event.data)) as Reply));
    socket.addEventListener('close', () => this.#gone());
  }

  async send<T = unknown>(method: string, params: object = {}): Promise<T> {
    const id = this.#nextId++;
    const answer = new Promise<unknown>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify({ id, method, params }));
    else this.#gone();
    return (await answer) as T;
  }

  async open(url: string): Promise<void> {
    await this.send('Page.navigate', { url });
    await untilSeen(
      `${url} is loaded`,
      () => this.evaluate('document.readyState'),
      (seen) => seen === 'complete',
    );
  }

  /** The value of an expression, promises awaited. */
  async evaluate<T = unknown>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.send<{
      result: { value: T };
      exceptionDetails?: { text: string; exception?: { description?: string } };
    }>('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails !== undefined)
      throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Waits until the page shows this text; the error says what it shows instead. */
  async shows(text: string | RegExp, timeoutMs?: number): Promise<void> {
    let shown = '';
    await until(
      `the page shows ${text}`,
      async () => {
        shown = await this.evaluate<string>('document.body.innerText');
        return typeof text === 'string' ? shown.includes(text) : text.test(shown);
      },
      timeoutMs,
    ).catch((err: unknown) => {
      throw new Error(`it shows instead:\n${shown.slice(0, 2000)}`, { cause: err });
    });
  }

  async size(width: number, height: number, options: { dark?: boolean } = {}): Promise<void> {
    await this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 600 });
    const value = options.dark === true ? 'dark' : 'light';
    await this.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
  }

  async screenshot(): Promise<Buffer> {
    const { data } = await this.send<{ data: string }>('Page.captureScreenshot', { format: 'png' });
    return Buffer.from(data, 'base64');
  }

  async key(key: string, text?: string): Promise<void> {
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', key, ...(text === undefined ? {} : { text }) });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', key });
  }

  /** A page behind another one counts as hidden, and does nothing. */
  async toFront(): Promise<void> {
    await this.send('Page.bringToFront');
  }

  /** A page that closes may be gone before it answers. */
  async close(): Promise<void> {
    await this.send('Page.close').catch(() => undefined);
    this.#socket.close();
  }

  /** Nobody answers any more. */
  #gone(): void {
    for (const { reject } of this.#waiting.values()) reject(new Error('the page is gone'));
    this.#waiting.clear();
  }

  #receive({ id, method, params, result, error }: Reply): void {
    if (id !== undefined) {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(result);
      else waiting?.reject(new Error(error.message));
      return;
    }
    if (method !== 'Runtime.exceptionThrown' && method !== 'Log.entryAdded') return;
    const complaint = JSON.stringify(params);
    // Pods and other tests bring and take addresses of this machine; the page loads again what that cost it.
    if (!complaint.includes('net::ERR_NETWORK_CHANGED')) this.complaints.push(complaint);
  }
}

export class Browser {
  readonly #child: ChildProcess;
  readonly #profile: string;
  readonly #port: number;

  private constructor(child: ChildProcess, profile: string, port: number) {
    this.#child = child;
    this.#profile = profile;
    this.#port = port;
  }

  static async start(): Promise<Browser> {
    const program = browserProgram();
    if (program === undefined) throw new Error('there is no chromium here; on Debian: apt-get install chromium');
    const profile = temporaryFolder('kts-chromium-');
    const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'];
    const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--mute-audio'];
    const places = [
      `--user-data-dir=${profile}`,
      '--remote-debugging-port=0',
      '--remote-allow-origins=*',
      'about:blank',
    ];
    const child = spawn(program, [...flags, ...quiet, ...places], {
      stdio: 'ignore',
      env: { ...process.env, TMPDIR: profile },
    });
    process.once('exit', () => child.kill('SIGKILL'));
    const port = await until(
      'chromium listens',
      async () => Number((await readFile(join(profile, 'DevToolsActivePort'), 'utf8')).split('\n')[0]) || undefined,
    );
    return new Browser(child, profile, port);
  }

  async page(): Promise<BrowserPage> {
    const answer = await fetch(`http://127.0.0.1:${this.#port}/json/new?about:blank`, { method: 'PUT' });
    const { webSocketDebuggerUrl } = (await answer.json()) as { webSocketDebuggerUrl: string };
    const socket = new WebSocket(webSocketDebuggerUrl);
    await once(socket, 'open');
    const page = new BrowserPage(socket);
    for (const domain of ['Page', 'Runtime', 'Log', 'Performance', 'Network']) await page.send(`${domain}.enable`);
    return page;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill('SIGTERM');
      await once(this.#child, 'exit');
    }
    removeFolder(this.#profile);
  }
}
