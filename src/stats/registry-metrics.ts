// What the registries tell of themselves: how many families there are by how stable they are. Everything that is registered
// is shown; nothing can be switched off.
import type { Labels, Registry } from '../lib/metrics.ts';

export function registerRegistryMetrics(registry: Registry, registries: readonly Registry[]): void {
  registry.collected(
    'registered_metrics_total',
    '[BETA] The count of registered metrics broken by stability level and deprecation version.',
    'counter',
    () => byStability(registries.flatMap((each) => [...each.heads()])),
  );
  registry.counter('disabled_metrics_total', '[BETA] The count of disabled metrics.');
  registry.counter('hidden_metrics_total', '[BETA] The count of hidden metrics.');
  registry.counter(
    'cardinality_enforcement_unexpected_categorizations_total',
    '[ALPHA] The count of unexpected categorizations during cardinality enforcement.',
  );
}

/** Families of the process are nobody's promise: they have no level. */
function byStability(heads: readonly { readonly help: string }[]): readonly (readonly [Labels, number])[] {
  const counts = new Map<string, number>();
  for (const { help } of heads) {
    const level = /^\[([A-Z]+)\] /.exec(help)?.[1];
    if (level !== undefined) counts.set(level, (counts.get(level) ?? 0) + 1);
  }
  return [...counts].map(([stability_level, count]) => [{ stability_level, deprecated_version: '' }, count] as const);
}
