// How far a pod's certificate is, and what the signer's answer makes of it. Pure.
import { parseTimeMs } from '../core/time.ts';
import { pem, pemBlocks } from '../lib/x509/der.ts';
import type { PodCertificateRequest } from './resources.ts';

/** A request under way, with the key it is for. */
export type Asked = { readonly name: string; readonly keyPem: string; readonly askedMs: number };
export type IssuedCertificate = {
  readonly keyPem: string;
  readonly chainPem: string;
  readonly refreshAtMs: number;
  readonly notAfterMs: number;
};
export type CertificateState =
  | { readonly is: 'none' }
  | { readonly is: 'waiting'; readonly asked: Asked }
  | { readonly is: 'issued'; readonly issued: IssuedCertificate; readonly next?: Asked }
  | { readonly is: 'refused'; readonly how: 'denied' | 'failed'; readonly reason: string; readonly message: string };

/** A request that was never seen for so long must have been deleted. */
const LOST_MS = 600_000;
const OVERDUE_MS = 600_000;
const JITTER_MS = 300_000;

export function answer(
  state: CertificateState,
  asked: Asked,
  request: PodCertificateRequest | undefined,
  nowMs: number,
  random: number,
): CertificateState {
  if (request === undefined) return nowMs > asked.askedMs + LOST_MS ? withoutRequest(state, asked.name) : state;
  for (const { type, reason = '', message = '' } of request.status?.conditions ?? []) {
    if (type === 'Denied') return { is: 'refused', how: 'denied', reason, message };
    if (type === 'Failed') return { is: 'refused', how: 'failed', reason, message };
    if (type === 'Issued') return { is: 'issued', issued: issuedIn(request, asked, random) };
  }
  return state;
}

function issuedIn({ status = {} }: PodCertificateRequest, { keyPem }: Asked, random: number): IssuedCertificate {
  const beginMs = parseTimeMs(status.beginRefreshAt);
  const notAfterMs = parseTimeMs(status.notAfter);
  // Spread, so that what was issued at once is not renewed at once; never past what is left of a short life.
  const jitterMs = random * Math.max(0, Math.min(JITTER_MS, (notAfterMs - beginMs) / 2));
  const chain = pemBlocks(status.certificateChain ?? '').map(({ bytes }) => pem('CERTIFICATE', bytes));
  return { keyPem, chainPem: chain.join(''), refreshAtMs: beginMs + jitterMs, notAfterMs };
}

/** The request is gone: it has to be made again. */
export function withoutRequest(state: CertificateState, name: string): CertificateState {
  if (state.is === 'waiting' && state.asked.name === name) return { is: 'none' };
  if (state.is === 'issued' && state.next?.name === name) return { is: 'issued', issued: state.issued };
  return state;
}

export const needsAsking = (state: CertificateState, nowMs: number): boolean =>
  state.is === 'none' || (state.is === 'issued' && state.next === undefined && nowMs >= state.issued.refreshAtMs);

/** As metrics call it. */
export function shownState(state: CertificateState, nowMs: number): string {
  switch (state.is) {
    case 'none':
    case 'waiting':
      return 'not_yet_issued';
    case 'refused':
      return state.how;
    case 'issued':
      if (nowMs > state.issued.notAfterMs) return 'expired';
      return nowMs > state.issued.refreshAtMs + OVERDUE_MS ? 'overdue_for_refresh' : 'fresh';
  }
}
