// The live topics: which view, how often it is looked at, and what of it is new.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { HistoryView, NowView, PodRow, SeriesName } from './model.ts';
import type { Message, Topic } from './live.ts';
import type { PagePorts } from './ports.ts';
import type { PageViews } from './views.ts';

const NOW_MS = 5000;
const DETAIL_MS = 2000;
const WHY_MS = 5000;
const DELAY_RESOLUTION_MS = 50;
const NANOS_PER_MS = 1e6;

const message = (event: string, value: unknown): Message => ({ event, data: JSON.stringify(value) });

/** The whole view each time, but for the hour behind it: of that only what is new. */
export function nowTopic(views: PageViews): Topic {
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  delay.enable();
  let sentMs = 0;
  return {
    everyMs: NOW_MS,
    first: async (signal) => message('now', await views.now(undefined, signal)),
    next: async (signal) => {
      const view = await views.now(delayOf(delay), signal);
      delay.reset();
      const history = since(view.history, sentMs);
      sentMs = view.history.endMs;
      return message('now', { ...view, history });
    },
    close: () => delay.disable(),
  };
}

function delayOf(delay: ReturnType<typeof monitorEventLoopDelay>): NowView['agent']['delayMs'] {
  const beyond = (nanos: number): number => Number(Math.max(0, nanos / NANOS_PER_MS - DELAY_RESOLUTION_MS).toFixed(1));
  if (delay.count === 0) return undefined;
  return { p50: beyond(delay.percentile(50)), p99: beyond(delay.percentile(99)), max: beyond(delay.max) };
}

/** The samples after `ms`, and the last one before: it may have been replaced. */
function since(history: HistoryView, ms: number): HistoryView {
  const count = Math.max(1, Math.round((history.endMs - ms) / history.everyMs) + 1);
  const names = Object.keys(history.series) as SeriesName[];
  const series = { ...history.series };
  for (const name of names) series[name] = history.series[name].slice(-count);
  return { ...history, series };
}

/** All rows to begin with, then those that changed and the names of those that went. */
export function podsTopic(ports: Pick<PagePorts, 'pods' | 'clock' | 'records'>, views: PageViews): Topic {
  const sent = new Map<string, string>();
  const touched = new Set<string>();
  let fullAt = 0;
  const remember = (rows: readonly PodRow[]): readonly PodRow[] =>
    rows.filter((row) => {
      const text = JSON.stringify(row);
      if (sent.get(row.uid) === text) return false;
      sent.set(row.uid, text);
      return true;
    });
  return {
    everyMs: WHY_MS,
    first: async (signal) => {
      const view = await views.pods(signal);
      // Those who are here already get what is new with the next message.
      if (sent.size === 0) {
        remember(view.pods);
        fullAt = ports.clock.monotonic();
      }
      return message('pods', view);
    },
    next: async (signal) => {
      const isFull = ports.clock.monotonic() - fullAt > views.figuresMs;
      if (isFull) fullAt = ports.clock.monotonic();
      const asked = new Set([
        ...touched,
        ...[...sent].filter(([, text]) => text.includes('"why":')).map(([uid]) => uid),
      ]);
      touched.clear();
      const rows = remember(isFull ? (await views.pods(signal)).pods : views.rowsOf(asked));
      const alive = new Set(ports.pods.all().map((pod) => pod.metadata.uid ?? ''));
      const gone = [...sent.keys()].filter((uid) => !alive.has(uid));
      for (const uid of gone) sent.delete(uid);
      return rows.length === 0 && gone.length === 0 ? undefined : message('rows', { rows, gone });
    },
    onChange: (wake) =>
      ports.records.touches.onChange((uid) => {
        touched.add(uid);
        wake();
      }),
  };
}

/** A view that is sent again when anything but its time is different. */
export function wholeTopic(
  event: string,
  make: (signal: AbortSignal) => Promise<object | undefined> | object | undefined,
  options: { readonly everyMs?: number; readonly onChange?: Topic['onChange'] } = {},
): Topic {
  let sent = '';
  const next = async (signal: AbortSignal): Promise<Message | undefined> => {
    const view = await make(signal);
    const text = JSON.stringify({ ...view, atMs: 0 });
    if (text === sent) return undefined;
    sent = text;
    return view === undefined ? message('gone', {}) : message(event, view);
  };
  return {
    everyMs: options.everyMs ?? DETAIL_MS,
    first: async (signal) => {
      const view = await make(signal);
      return view === undefined ? message('gone', {}) : message(event, view);
    },
    next,
    ...(options.onChange === undefined ? {} : { onChange: options.onChange }),
  };
}
