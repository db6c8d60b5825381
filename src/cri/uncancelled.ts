// Runtimes do not take it well when the making of something is called off half-way: containers stay behind that can be
// neither started nor removed for seconds. A pod that is to stop waits the moment it takes; only the end of the agent
// itself cuts these calls short.
import type { CriRuntime } from './services.ts';

/** `whole`: aborts when the agent stops. */
export const uncancelled = (cri: CriRuntime, whole: AbortSignal): CriRuntime => ({
  ...cri,
  runPodSandbox: (request) => cri.runPodSandbox(request, whole),
  createContainer: (request) => cri.createContainer(request, whole),
  startContainer: (request) => cri.startContainer(request, whole),
});
