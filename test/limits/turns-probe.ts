// Loaded into the agent's process ahead of its own code (`--import`): the processor time of this thread between two turns of a
// timer, which is no less than that of the longest turn of the event loop in between. A busy machine makes no turn longer.
import { monitorEventLoopDelay } from 'node:perf_hooks';

export type Turns = {
  /** Of the longest turn since the last question. */
  readonly longestMs: number;
  /** As the clock saw it, waiting for a processor included. */
  readonly delayMs: number;
};

const EVERY_MS = 5;
const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();
let longestMs = 0;
let before = process.threadCpuUsage();
/** The start is no answer to an input. */
let isCounted = false;

const look = (): void => {
  const { user, system } = process.threadCpuUsage(before);
  before = process.threadCpuUsage();
  if (isCounted) longestMs = Math.max(longestMs, (user + system) / 1000);
};
setInterval(look, EVERY_MS).unref();

process.on('message', () => {
  look();
  const turns: Turns = { longestMs: Math.round(longestMs), delayMs: Math.round(delay.max / 1e6) };
  isCounted = true;
  longestMs = 0;
  delay.reset();
  process.send?.(turns);
});
process.channel?.unref();
