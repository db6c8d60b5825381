import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resourceMetricsText } from './resource-metrics.ts';
import { Moment, type ContainerFigures, type SwapFigures } from './summary-types.ts';

const at = new Moment(1_000_000);
const LEVEL = { cpu: undefined, memory: undefined, io: undefined, swap: undefined };

/** Samples of one container's page, without its labels and the moment. */
function samplesOf(container: Partial<ContainerFigures>): string[] {
  const containers = [{ name: 'c', startTime: new Moment(0), ...LEVEL, ...container }];
  const podRef = { name: 'p', namespace: 'n', uid: 'u' };
  const node = { nodeName: 'n1', systemContainers: [], startTime: at, ...LEVEL };
  const text = resourceMetricsText({ node, pods: [{ podRef, startTime: at, containers, ...LEVEL }] }, false);
  return text
    .split('\n')
    .filter((line) => line.startsWith('container_'))
    .map((line) => line.replace(/\{.*\}/, '').replace(/ 1000000$/, ''));
}

const swap = (used: number | undefined, available: number | undefined): { swap: SwapFigures } => ({
  swap: { time: at, swapUsageBytes: used, swapAvailableBytes: available },
});

test('a container: only what is known of it', () => {
  const rows: readonly [string, Partial<ContainerFigures>, readonly string[]][] = [
    ['nothing', {}, []],
    ['its start', { startTime: new Moment(5000) }, ['container_start_time_seconds 5']],
    [
      'swap: the limit is what it uses and what is left',
      swap(10, 20),
      ['container_swap_limit_bytes 30', 'container_swap_usage_bytes 10'],
    ],
    ['swap without a use', swap(undefined, 20), ['container_swap_limit_bytes 20']],
    ['swap without a limit', swap(10, undefined), ['container_swap_usage_bytes 10']],
  ];
  for (const [what, container, expected] of rows) assert.deepEqual(samplesOf(container).sort(), expected, what);
});

test('a summary that could not be made is an error of the scrape, and nothing else', () => {
  const samples = (showHidden: boolean): string[] =>
    resourceMetricsText(undefined, showHidden)
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
  assert.deepEqual(samples(false), ['resource_scrape_error 1']);
  assert.deepEqual(samples(true), ['resource_scrape_error 1', 'scrape_error 1'], 'hidden families asked for');
});
