// What a FlexVolume driver answered: one JSON object with a status. Keys count whatever their case, as for upstream. Pure.
import type { ChildResult } from '../../host/mounts/child.ts';

/** What a driver can do; it can do all that it does not deny, but for metrics. */
export type DriverCapabilities = {
  /** Its volumes are attached by a controller, and their devices mounted once for all pods. */
  readonly attach: boolean;
  readonly selinuxRelabel: boolean;
  readonly supportsMetrics: boolean;
  readonly fsGroup: boolean;
  readonly requiresFSResize: boolean;
};

export type DriverAnswer =
  | { readonly is: 'success'; readonly device: string; readonly can: DriverCapabilities }
  | { readonly is: 'notSupported' }
  | { readonly is: 'failure'; readonly message: string };

const DEFAULTS: DriverCapabilities = {
  attach: true,
  selinuxRelabel: true,
  supportsMetrics: false,
  fsGroup: true,
  requiresFSResize: true,
};
const MAX_SHOWN = 200;

type Fields = ReadonlyMap<string, unknown>;

/** `withSecrets`: the driver was told secrets, which it may have printed. */
export function answerOf(command: string, { code, output }: ChildResult, withSecrets = false): DriverAnswer {
  const parsed = parse(output, withSecrets);
  if ('problem' in parsed) return { is: 'failure', message: `${command} command failed: ${parsed.problem}` };
  const { fields } = parsed;
  const status = text(fields, 'status');
  const message = text(fields, 'message');
  const device = text(fields, 'device');
  const can = capabilitiesOf(fields.get('capabilities'));
  if (status === undefined || message === undefined || device === undefined || can === undefined)
    return { is: 'failure', message: `${command} command failed: a field of the answer has the wrong type` };
  if (status === 'Not supported') return { is: 'notSupported' };
  if (status !== 'Success')
    return { is: 'failure', message: `${command} command failed, status: ${status}, reason: ${message}` };
  // The driver contradicts itself.
  if (code !== 0) return { is: 'failure', message: `${command} command failed: exit status ${code}` };
  return { is: 'success', device, can };
}

function parse(output: string, withSecrets: boolean): { readonly fields: Fields } | { readonly problem: string } {
  if (output === '') return { problem: 'unexpected end of JSON input' };
  let value: unknown;
  try {
    value = JSON.parse(output);
  } catch {
    const shown = withSecrets ? 'not shown, there may be secrets in it' : JSON.stringify(output.slice(0, MAX_SHOWN));
    return { problem: `the answer is not JSON: ${shown}` };
  }
  if (value === null) return { fields: new Map() };
  const fields = fieldsOf(value);
  return fields === undefined ? { problem: 'the answer is not a JSON object' } : { fields };
}

const fieldsOf = (value: unknown): Fields | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? new Map(Object.entries(value).map(([key, field]) => [key.toLowerCase(), field]))
    : undefined;

/** Undefined for another type; nothing counts as empty. */
function text(fields: Fields, name: string): string | undefined {
  const value = fields.get(name) ?? '';
  return typeof value === 'string' ? value : undefined;
}

function capabilitiesOf(value: unknown): DriverCapabilities | undefined {
  if (value === undefined || value === null) return DEFAULTS;
  const fields = fieldsOf(value);
  if (fields === undefined) return undefined;
  const said = Object.keys(DEFAULTS).flatMap((name) => {
    const given = fields.get(name.toLowerCase()) ?? undefined;
    return given === undefined ? [] : [[name, given] as const];
  });
  return said.every(([, given]) => typeof given === 'boolean')
    ? { ...DEFAULTS, ...(Object.fromEntries(said) as Partial<DriverCapabilities>) }
    : undefined;
}
