// One stream of server-sent events for the view that is shown. While the tab is hidden there is none, and the node does
// nothing for this page.

export type Listeners = Readonly<Record<string, (data: unknown) => void>>;

export class Live {
  readonly #onState: (text: string) => void;
  #source: EventSource | undefined;
  #open: (() => EventSource) | undefined;

  constructor(onState: (text: string) => void) {
    this.#onState = onState;
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) this.#close();
      else if (this.#source === undefined) this.#source = this.#open?.();
    });
  }

  follow(query: Readonly<Record<string, string>>, listeners: Listeners): void {
    this.#close();
    this.#open = () => {
      const source = new EventSource(`api/live?${new URLSearchParams(query)}`);
      source.addEventListener('open', () => this.#onState(''));
      source.addEventListener('error', () => this.#onState('Not connected, trying again …'));
      for (const [event, listener] of Object.entries(listeners))
        source.addEventListener(event, (message: MessageEvent<string>) => listener(JSON.parse(message.data)));
      return source;
    };
    if (!document.hidden) this.#source = this.#open();
  }

  #close(): void {
    this.#source?.close();
    this.#source = undefined;
  }
}
