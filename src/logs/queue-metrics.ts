// The queue of logs that wait to be looked at, in the figures every Kubernetes component has of its work queues.
import type { Clock } from '../lib/clock.ts';
import { exponentialBuckets, type Counter, type Gauge, type Histogram, type Registry } from '../lib/metrics.ts';

/** Ten nanoseconds to ten seconds. */
const BUCKETS = exponentialBuckets(1e-8, 10, 10);
/** Upstream's queue of the same purpose. */
const QUEUE = { name: 'kubelet_log_rotate_manager' };

export class QueueMetrics {
  readonly #clock: Clock;
  readonly #depth: Gauge;
  readonly #adds: Counter;
  readonly #waited: Histogram;
  readonly #worked: Histogram;
  /** When the work under way began. */
  readonly #begun = new Set<{ readonly atMs: number }>();

  constructor(clock: Clock, registry: Registry) {
    const label = ['name'];
    this.#clock = clock;
    this.#depth = registry.gauge('workqueue_depth', '[BETA] Current depth of workqueue', label);
    this.#adds = registry.counter('workqueue_adds_total', '[BETA] Total number of adds handled by workqueue', label);
    this.#waited = registry.histogram(
      'workqueue_queue_duration_seconds',
      '[BETA] How long in seconds an item stays in workqueue before being requested.',
      label,
      BUCKETS,
    );
    this.#worked = registry.histogram(
      'workqueue_work_duration_seconds',
      '[BETA] How long in seconds processing an item from workqueue takes.',
      label,
      BUCKETS,
    );
    // What failed is looked at with all others again.
    registry
      .counter('workqueue_retries_total', '[BETA] Total number of retries handled by workqueue', label)
      .inc(QUEUE, 0);
    this.#depth.add(0, QUEUE);
    this.#adds.inc(QUEUE, 0);
    for (const histogram of [this.#waited, this.#worked]) histogram.show(QUEUE);
    this.#showUnfinished(registry);
  }

  /** One item from the moment it waits: `take` gives it its turn, or never does. */
  async item(take: (work: () => Promise<void>) => Promise<void>, work: () => Promise<void>): Promise<void> {
    const addedMs = this.#clock.monotonic();
    let waits = true;
    const noLonger = (): void => {
      if (waits) this.#depth.add(-1, QUEUE);
      waits = false;
    };
    this.#adds.inc(QUEUE);
    this.#depth.add(1, QUEUE);
    try {
      await take(() => {
        noLonger();
        return this.#timed(addedMs, work);
      });
    } finally {
      noLonger();
    }
  }

  async #timed(addedMs: number, work: () => Promise<void>): Promise<void> {
    const begun = { atMs: this.#clock.monotonic() };
    this.#waited.observe((begun.atMs - addedMs) / 1000, QUEUE);
    this.#begun.add(begun);
    try {
      await work();
    } finally {
      this.#begun.delete(begun);
      this.#worked.observe((this.#clock.monotonic() - begun.atMs) / 1000, QUEUE);
    }
  }

  #showUnfinished(registry: Registry): void {
    const ages = (): number[] => [...this.#begun].map(({ atMs }) => (this.#clock.monotonic() - atMs) / 1000);
    registry.collected(
      'workqueue_unfinished_work_seconds',
      "[BETA] How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this increases.",
      'gauge',
      () => [[QUEUE, ages().reduce((sum, age) => sum + age, 0)]],
    );
    registry.collected(
      'workqueue_longest_running_processor_seconds',
      '[BETA] How many seconds has the longest running processor for workqueue been running.',
      'gauge',
      () => [[QUEUE, Math.max(0, ...ages())]],
    );
  }
}
