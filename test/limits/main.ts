// The search by hand, with what it finds as it goes: `node test/limits/main.ts --inputs 100000 --seconds 3600 --seed 1`.
import { parseArgs } from 'node:util';
import { search } from './engine.ts';
import { SURFACES } from './surfaces.ts';

const { values } = parseArgs({
  options: {
    inputs: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '600' },
    seed: { type: 'string', default: '1' },
    input: { type: 'string' },
    surface: { type: 'string', default: '' },
    large: { type: 'string', default: '0.06' },
    trace: { type: 'boolean', default: false },
    containerd: { type: 'boolean', default: false },
  },
});
const outcome = await search(
  {
    runtime: values.containerd ? 'containerd' : 'memory',
    seed: Number(values.seed),
    inputs: Number(values.inputs),
    cpuSeconds: Number(values.seconds),
    largeShare: Number(values.large),
    surfaces: SURFACES.filter(({ name }) => name.includes(values.surface)),
    ...(values.trace ? { trace: (line: string) => console.log(new Date().toISOString(), line.slice(0, 600)) } : {}),
    ...(values.input === undefined ? {} : { only: Number(values.input) }),
  },
  console.log,
);
console.log(JSON.stringify(outcome, undefined, 1));
process.exitCode = outcome.found.length === 0 ? 0 : 1;
