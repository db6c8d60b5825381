// Decodes large texts off the main thread, where their size cannot hold up anything else.
import { parentPort, workerData } from 'node:worker_threads';
import { decodeText, locateFields } from './decode.ts';
import type { DecodeJob } from './decoder.ts';

const job = workerData as DecodeJob;
parentPort?.postMessage(job.do === 'decode' ? decodeText(job.text) : locateFields(job.text, job.document, job.fields));
