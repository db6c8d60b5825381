// The command of an exec probe with `$(NAME)` filled in. Only the container's own env entries count; `$$` is a dollar.
import type { Container } from '../core/pod.ts';

export function expandCommand(command: readonly string[], container: Container): readonly string[] {
  const env = new Map((container.env ?? []).map((e) => [e.name, e.value ?? '']));
  return command.map((word) =>
    word.replace(/\$\$|\$\(([^)]*)\)/g, (found, name: string | undefined) =>
      name === undefined ? '$' : (env.get(name) ?? found),
    ),
  );
}
