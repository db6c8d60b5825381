// node:worker_threads: there is one thread.
export class Worker {
  constructor() {
    throw new Error('worker threads are not simulated');
  }
}
export const parentPort = undefined;
export const workerData = undefined;
export const isMainThread = true;
export const threadId = 0;
