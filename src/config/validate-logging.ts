// The rules of the `logging` and `tracing` blocks.
import { formatDurationMs } from '../core/duration.ts';
import { toUnits, quantity } from '../core/quantity.ts';
import type { KubeletConfig } from './config-fields.ts';
import type { FeatureGates } from './feature-gates.ts';

export function loggingErrors(logging: KubeletConfig['logging'], gates: FeatureGates): string[] {
  const errors: string[] = [];
  const { flushFrequencyMs } = logging;
  if (flushFrequencyMs <= 0)
    errors.push(
      `logging.flushFrequency: Invalid value: "${formatDurationMs(flushFrequencyMs)}": Must be greater than zero`,
    );
  if (logging.format !== 'text' && logging.format !== 'json')
    errors.push(`logging.format: Invalid value: ${JSON.stringify(logging.format)}: Unsupported log format`);
  else if (logging.format === 'json' && !gates.enabled('LoggingBetaOptions'))
    errors.push('logging.format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature');
  if (logging.verbosity > 2147483647)
    errors.push(`logging.verbosity: Invalid value: ${logging.verbosity}: Must be <= 2147483647`);
  if (logging.format !== 'text' && logging.vmodule.length > 0)
    errors.push('logging.vmodule: Forbidden: Only supported for text log format');
  logging.vmodule.forEach(({ filePattern, verbosity }, i) => {
    if (filePattern === '') errors.push(`logging.vmodule[${i}]: Required value: File pattern must not be empty`);
    if (/[=,]/.test(filePattern))
      errors.push(
        `logging.vmodule[${i}]: Invalid value: ${JSON.stringify(filePattern)}: File pattern must not contain equal sign or comma`,
      );
    if (verbosity > 2147483647)
      errors.push(`logging.vmodule[${i}]: Invalid value: ${verbosity}: Must be <= 2147483647`);
  });
  if (gates.enabled('LoggingAlphaOptions')) return errors;
  for (const format of ['text', 'json'] as const) {
    const options = logging.options[format];
    if (options.splitStream)
      errors.push(`logging.options.${format}.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled`);
    if (toUnits(quantity(options.infoBufferSize)) !== 0n)
      errors.push(`logging.options.${format}.infoBufferSize: Forbidden: Feature LoggingAlphaOptions is disabled`);
  }
  return errors;
}

export function tracingErrors(tracing: KubeletConfig['tracing']): string[] {
  const errors: string[] = [];
  const rate = tracing?.samplingRatePerMillion;
  if (rate !== undefined && rate < 0)
    errors.push(`tracing.samplingRatePerMillion: Invalid value: ${rate}: sampling rate must be positive`);
  if (rate !== undefined && rate > 1_000_000)
    errors.push(
      `tracing.samplingRatePerMillion: Invalid value: ${rate}: sampling rate per million must be less than or equal to one million`,
    );
  const endpoint = tracing?.endpoint;
  const scheme = endpoint === undefined ? undefined : /^([A-Za-z][A-Za-z0-9+.-]*):(?!\d+$)/.exec(endpoint)?.[1];
  if (scheme !== undefined && !['dns', 'unix', 'unix-abstract'].includes(scheme))
    errors.push(
      `tracing.endpoint: Invalid value: ${JSON.stringify(endpoint)}: unsupported scheme: ${scheme}.  Options are none, dns, unix, or unix-abstract`,
    );
  return errors;
}
