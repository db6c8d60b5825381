// What a check says. Absence of a rejection means "no objection".
import type { Pod } from '../core/pod.ts';

export type Rejection = { readonly reason: string; readonly message: string };

export type Admitted = {
  readonly ok: true;
  /** Pods to evict (and to see gone) before this one has what it asks for; only critical pods have any. */
  readonly victims: readonly Pod[];
  /** The resource they are evicted for. */
  readonly scarce?: string;
};

export type AdmissionVerdict = Admitted | ({ readonly ok: false } & Rejection);
