// A sandbox that was stopped stays stopped: whoever asks again is answered without asking the runtime, which would take down
// the network a second time.
import type { CriRuntime } from './services.ts';

/** What is forgotten is stopped again, which is harmless. */
const REMEMBERED = 256;

export function stoppingOnce(runtime: CriRuntime): CriRuntime {
  const stopped = new Set<string>();
  return {
    ...runtime,
    stopPodSandbox: async (request, signal) => {
      const id = request.podSandboxId ?? '';
      if (stopped.has(id)) return {};
      const answer = await runtime.stopPodSandbox(request, signal);
      stopped.add(id);
      const [oldest] = stopped;
      if (stopped.size > REMEMBERED && oldest !== undefined) stopped.delete(oldest);
      return answer;
    },
    removePodSandbox: async (request, signal) => {
      const answer = await runtime.removePodSandbox(request, signal);
      stopped.delete(request.podSandboxId ?? '');
      return answer;
    },
  };
}
