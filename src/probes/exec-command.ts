// The command of an exec probe with `$(NAME)` filled in. Only the container's own env entries count; `$$` is a dollar.
import { probeCommandBudget } from '../core/bounds.ts';
import type { Container } from '../core/pod.ts';
import { expand } from '../lib/expansion.ts';

export function expandCommand(command: readonly string[], container: Container): readonly string[] {
  const env = new Map((container.env ?? []).map((e) => [e.name, e.value ?? '']));
  const spending = { budget: probeCommandBudget(), field: 'exec.command' };
  return command.map((word) => expand(word, (name) => env.get(name), spending));
}
