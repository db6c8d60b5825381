// Pods with claimed devices: claims that several of them share, and claims of their own made from a template.
import type { Random } from '../engine/random.ts';
import { container, POLITE, type PodKind } from './pods.ts';

/** The drivers whose devices each shared claim has. */
export const SHARED: Readonly<Record<string, readonly string[]>> = {
  'shared-0': ['a.sim.dra'],
  'shared-1': ['b.sim.dra'],
  'shared-2': ['a.sim.dra', 'b.sim.dra'],
};

type Entry = { readonly name: string };

const own: Entry = { name: 'own', resourceClaimTemplateName: 'own' } as Entry;
const shared = (random: Random, not = ''): Entry => {
  const resourceClaimName = random.pick(Object.keys(SHARED).filter((name) => name !== not));
  return { name: resourceClaimName, resourceClaimName } as Entry;
};
const using = (...claims: readonly Entry[]): Record<string, unknown> => ({
  resources: { claims: claims.map(({ name }) => ({ name })) },
});

export const CLAIM_KINDS: Readonly<Record<string, PodKind>> = {
  'claims-own': {
    fate: 'runs',
    spec: () => ({ resourceClaims: [own], containers: [container('main', POLITE, using(own))] }),
  },
  'claims-shared': {
    fate: 'runs',
    spec: (r) => {
      const claim = shared(r);
      return { resourceClaims: [claim], containers: [container('main', POLITE, using(claim))] };
    },
  },
  'claims-many': {
    fate: 'runs',
    spec: (r) => {
      const first = shared(r);
      const second = shared(r, first.name);
      return {
        resourceClaims: [first, own, second],
        initContainers: [container('init', 'sleep 1', using(second))],
        containers: [container('a', POLITE, using(first, own)), container('b', POLITE, using(second))],
      };
    },
  },
  'claims-job': {
    fate: 'ends',
    spec: (r) => {
      const claim = shared(r);
      return {
        restartPolicy: 'Never',
        resourceClaims: [own, claim],
        containers: [container('main', `sleep ${r.int(1, 300)}; exit ${r.int(0, 1)}`, using(own, claim))],
      };
    },
  },
  'claims-crashing': {
    fate: 'unsteady',
    spec: (r) => {
      const claim = shared(r);
      const main = container('main', `sleep ${r.int(5, 300)}; exit 1`, using(claim));
      return { resourceClaims: [claim], containers: [main] };
    },
  },
};

/** Whose containers the agent has no reason of its own to end. */
export const STEADY_CLAIM_KINDS: readonly string[] = ['claims-own', 'claims-shared', 'claims-many', 'claims-crashing'];
