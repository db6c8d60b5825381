// A shell in a container, where the page may write: the protocol of `kubectl exec` over a WebSocket.
import type { ContainerView } from '../model.ts';
import { fill, h } from './dom.ts';
import { Screen } from './screen.ts';

const KEYS: Readonly<Record<string, string>> = {
  Enter: '\r',
  Backspace: '\x7f',
  Tab: '\t',
  Escape: '\x1b',
  ArrowUp: '\x1b[A',
  ArrowDown: '\x1b[B',
  ArrowRight: '\x1b[C',
  ArrowLeft: '\x1b[D',
  Home: '\x1b[H',
  End: '\x1b[F',
  Delete: '\x1b[3~',
  PageUp: '\x1b[5~',
  PageDown: '\x1b[6~',
};
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 };
const SHELL = 'command -v bash >/dev/null && exec bash || exec sh';

export class TerminalPanel {
  readonly element: HTMLElement;
  readonly #where: string;
  readonly #choice = h('select', { 'aria-label': 'Container for the terminal' });
  readonly #view: HTMLElement;
  readonly #state = h('span', { class: 'dim', role: 'status' });
  readonly #decoder = new TextDecoder();
  #screen = new Screen(100, 24);
  #socket: WebSocket | undefined;
  #isDrawing = false;
  #names = '';

  constructor(namespace: string, name: string) {
    this.#where = `${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
    this.#view = h('div', {
      class: 'screen',
      tabindex: 0,
      role: 'textbox',
      'aria-label': 'Terminal. Press Control and Shift and Escape to leave it.',
      'aria-multiline': 'true',
      onkeydown: (event) => this.#key(event as KeyboardEvent),
      onpaste: (event) => this.#paste(event as ClipboardEvent),
      hidden: true,
    });
    this.element = h(
      'section',
      { class: 'card wide', 'aria-labelledby': 'h-terminal' },
      h('h2', { id: 'h-terminal' }, 'Terminal'),
      h(
        'div',
        { class: 'controls' },
        this.#choice,
        h('button', { type: 'button', onclick: () => this.#open() }, 'Open a shell'),
        h('button', { type: 'button', class: 'quiet', onclick: () => this.close() }, 'Close'),
        this.#state,
      ),
      this.#view,
    );
  }

  containers(views: readonly ContainerView[]): void {
    const running = views.filter((c) => c.state === 'Running').map((c) => c.name);
    if (running.join() === this.#names) return;
    this.#names = running.join();
    const chosen = this.#choice.value;
    fill(this.#choice, ...running.map((n) => h('option', { value: n }, n)));
    if (running.includes(chosen)) this.#choice.value = chosen;
  }

  close(): void {
    this.#socket?.close();
    this.#socket = undefined;
  }

  #open(): void {
    this.close();
    this.#view.hidden = false;
    const columns = Math.max(40, Math.min(200, Math.floor((this.#view.clientWidth - 24) / this.#charWidth())));
    this.#screen = new Screen(columns, 24);
    const query = new URLSearchParams({ input: '1', output: '1', tty: '1' });
    for (const word of ['sh', '-c', SHELL]) query.append('command', word);
    const url = new URL(
      `exec/${this.#where}/${encodeURIComponent(this.#choice.value)}?${query}`,
      location.href.split('#')[0],
    );
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url, ['v5.channel.k8s.io', 'v4.channel.k8s.io']);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    fill(this.#state, 'Connecting …');
    socket.addEventListener('open', () => {
      fill(this.#state, 'Open');
      this.#send(CHANNEL.resize, JSON.stringify({ Width: columns, Height: 24 }));
      this.#view.focus();
    });
    socket.addEventListener('message', (event: MessageEvent<ArrayBuffer>) => this.#receive(new Uint8Array(event.data)));
    socket.addEventListener('close', () => fill(this.#state, 'Closed'));
    this.#draw();
  }

  #charWidth(): number {
    const probe = h('span', {}, 'm'.repeat(20));
    this.#view.append(probe);
    const width = probe.getBoundingClientRect().width / 20;
    probe.remove();
    return width || 8;
  }

  #send(channel: number, text: string): void {
    const data = new TextEncoder().encode(text);
    const message = new Uint8Array(data.length + 1);
    message[0] = channel;
    message.set(data, 1);
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(message);
  }

  #receive(message: Uint8Array): void {
    const [channel] = message;
    const text = this.#decoder.decode(message.subarray(1), { stream: true });
    if (channel === CHANNEL.stdout || channel === CHANNEL.stderr) this.#screen.write(text);
    else if (channel === CHANNEL.error && !text.includes('"Success"')) this.#screen.write(`\r\n${text}\r\n`);
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    requestAnimationFrame(() => this.#draw());
  }

  #key(event: KeyboardEvent): void {
    if (event.key === 'Escape' && event.ctrlKey && event.shiftKey) return this.#view.blur();
    if (event.metaKey || (event.ctrlKey && event.shiftKey)) return;
    const text = this.#textOf(event);
    if (text === undefined) return;
    event.preventDefault();
    this.#send(CHANNEL.stdin, text);
  }

  #textOf({ key, ctrlKey, altKey }: KeyboardEvent): string | undefined {
    if (ctrlKey && /^[a-z[\]\\^_@]$/i.test(key)) return String.fromCharCode(key.toUpperCase().charCodeAt(0) & 31);
    const text = KEYS[key] ?? (key.length === 1 ? key : undefined);
    return text !== undefined && altKey ? `\x1b${text}` : text;
  }

  #paste(event: ClipboardEvent): void {
    event.preventDefault();
    this.#send(CHANNEL.stdin, event.clipboardData?.getData('text').replaceAll('\n', '\r') ?? '');
  }

  #draw(): void {
    this.#isDrawing = false;
    const { lines, start, x, y } = this.#screen;
    fill(
      this.#view,
      ...lines.map((cells, at) => {
        const row = h('div');
        const cursor = at === start + y ? x : -1;
        for (let i = 0; i < Math.max(cells.length, cursor + 1, 1);) {
          const style = i === cursor ? 'cursor' : (cells[i]?.style ?? '');
          let text = cells[i]?.char ?? ' ';
          let to = i + 1;
          while (to < cells.length && to !== cursor && i !== cursor && cells[to]?.style === style)
            text += cells[to++]?.char ?? ' ';
          row.append(style === '' ? text : h('span', { class: style }, text));
          i = to;
        }
        return row;
      }),
    );
    this.#view.scrollTop = this.#view.scrollHeight;
  }
}
