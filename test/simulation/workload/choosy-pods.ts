// Pods that choose their node by a label, which it has at times (`labels`).
import { container, POLITE, type PodKind } from './pods.ts';

export const CHOSEN = { choice: 'here' };

export const CHOOSY_KINDS: Readonly<Record<string, PodKind>> = {
  choosy: { fate: 'unsteady', spec: () => ({ nodeSelector: CHOSEN, containers: [container('main', POLITE)] }) },
};
