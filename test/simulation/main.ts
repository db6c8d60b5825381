// `npm run simulate -- --seed 17 --until 3h`: one run or many, with or without a trace. See docs/SIMULATION.md.
import { parseArgs } from 'node:util';
import { durationMs } from '../../src/core/duration.ts';
import { simulate, type Outcome } from './run.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '1' },
    until: { type: 'string', default: '3h' },
    pods: { type: 'string', default: '20' },
    life: { type: 'string', default: '30m' },
    'fault-every': { type: 'string', default: '10m' },
    calm: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    verbosity: { type: 'string', short: 'v', default: '0' },
  },
});

function report(o: Outcome, cpuSeconds: number): void {
  const hours = o.simulatedMs / 3_600_000;
  const speed = Math.round(o.simulatedMs / 1000 / Math.max(cpuSeconds, 0.001));
  console.log(
    `seed ${o.seed}: ${hours.toFixed(1)} h, up to ${o.mostPods} pods, ${o.steps} events, ${speed} × real time, digest ${o.digest}`,
  );
  for (const { invariant, atMs, text } of o.violations)
    console.log(`  VIOLATED at ${(atMs / 1000).toFixed(1)} s: ${invariant}: ${text}`);
}

const { realCpuUsage } = process as unknown as { realCpuUsage: () => { user: number } };
let failed = 0;
for (let run = 0; run < Number(values.runs); run++) {
  const began = realCpuUsage().user;
  const outcome = await simulate({
    seed: Number(values.seed) + run,
    verbosity: Number(values.verbosity),
    profile: {
      untilMs: durationMs(values.until),
      pods: Number(values.pods),
      lifeMs: durationMs(values.life),
      ...(values.calm ? {} : { faultEveryMs: durationMs(values['fault-every']) }),
    },
    ...(values.trace ? { onTrace: (line: string) => console.log(line) } : {}),
    ...(values.verbosity === '0' ? {} : { onLog: (line: string) => console.log(`    ${line.trimEnd()}`) }),
  });
  report(outcome, (realCpuUsage().user - began) / 1e6);
  if (outcome.violations.length > 0) failed++;
}
process.exitCode = failed > 0 ? 1 : 0;
