// CPU requests and limits in the kernel's units.

export const MIN_SHARES = 2;
export const MAX_SHARES = 262_144;
const MIN_QUOTA_US = 1000;

/** cpu.shares for millicores; no request gets the minimum. */
export const sharesOfMilli = (milli: number): number =>
  milli === 0 ? MIN_SHARES : Math.min(Math.max(Math.floor((milli * 1024) / 1000), MIN_SHARES), MAX_SHARES);

/** Microseconds per period for millicores; 0 for no limit. The kernel accepts no less than a millisecond. */
export const quotaOfMilli = (milli: number, periodUs: number): number =>
  milli === 0 ? 0 : Math.max(Math.floor((milli * periodUs) / 1000), MIN_QUOTA_US);
