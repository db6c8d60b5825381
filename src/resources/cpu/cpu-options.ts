// The options of the static CPU manager policy: which there are, which gate each needs, which exclude each other. Pure.
import { KubeletError } from '../../lib/errors.ts';
import { parseGoBool } from '../topology/go-values.ts';
import type { CpuTopology } from './cpu-topology.ts';

export type CpuOption =
  | 'full-pcpus-only'
  | 'distribute-cpus-across-numa'
  | 'align-by-socket'
  | 'distribute-cpus-across-cores'
  | 'strict-cpu-reservation'
  | 'prefer-align-cpus-by-uncorecache';

/** The options that are on. */
export type CpuOptions = ReadonlySet<CpuOption>;

type Maturity = 'Alpha' | 'Beta' | 'Stable';

const MATURITY: Readonly<Record<CpuOption, Maturity>> = {
  'full-pcpus-only': 'Stable',
  'strict-cpu-reservation': 'Stable',
  'prefer-align-cpus-by-uncorecache': 'Stable',
  'distribute-cpus-across-numa': 'Beta',
  'align-by-socket': 'Alpha',
  'distribute-cpus-across-cores': 'Alpha',
};

/** In the order upstream names them. */
const EXCLUSIVE: readonly (readonly [CpuOption, CpuOption])[] = [
  ['full-pcpus-only', 'distribute-cpus-across-cores'],
  ['distribute-cpus-across-numa', 'distribute-cpus-across-cores'],
  ['prefer-align-cpus-by-uncorecache', 'distribute-cpus-across-cores'],
  ['prefer-align-cpus-by-uncorecache', 'distribute-cpus-across-numa'],
];

export type OptionGates = { readonly alpha: boolean; readonly beta: boolean };

const isCpuOption = (name: string): name is CpuOption => Object.hasOwn(MATURITY, name);

export function parseCpuOptions(given: Readonly<Record<string, string>>, gates: OptionGates): CpuOptions {
  const on = new Set<CpuOption>();
  for (const [name, value] of Object.entries(given)) {
    if (!isCpuOption(name)) throw new KubeletError('invalid', `unknown CPU Manager Policy option: "${name}"`);
    const maturity = MATURITY[name];
    if ((maturity === 'Alpha' && !gates.alpha) || (maturity === 'Beta' && !gates.beta))
      throw new KubeletError(
        'invalid',
        `CPU Manager Policy ${maturity}-level Options not enabled, but option "${name}" provided`,
      );
    const parsed = parseGoBool(value);
    if (parsed === undefined)
      throw new KubeletError(
        'invalid',
        `bad value for option "${name}": strconv.ParseBool: parsing ${JSON.stringify(value)}: invalid syntax`,
      );
    if (parsed) on.add(name);
  }
  for (const [a, b] of EXCLUSIVE)
    if (on.has(a) && on.has(b))
      throw new KubeletError('invalid', `static policy options ${a} and ${b} can not be used at the same time`);
  return on;
}

/** Whether the machine and the topology manager suit the options. */
export function checkCpuOptions(options: CpuOptions, { counts }: CpuTopology, topologyPolicy: string): void {
  if (!options.has('align-by-socket')) return;
  if (topologyPolicy === 'single-numa-node')
    throw new KubeletError(
      'invalid',
      'Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option',
    );
  if (counts.socket > counts.numa)
    throw new KubeletError(
      'invalid',
      'Align by socket is not compatible with hardware where number of sockets are more than number of NUMA',
    );
}
