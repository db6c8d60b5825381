// Work started side by side. `Promise.all` rejects with the first failure while the rest goes on: a caller that then
// undoes, or ends, what the work is for meets the rest of it.

/** Like `Promise.all`, but settles only when all of it has settled. The first failure, in order, is thrown. */
export async function settleAll<T extends readonly unknown[]>(work: {
  readonly [K in keyof T]: Promise<T[K]>;
}): Promise<T> {
  await Promise.allSettled(work);
  return (await Promise.all(work)) as unknown as T;
}
