// No pod ends the agent by what it is multiplied into: beyond its bound it is an error of that pod. The pods are as large as
// etcd takes one, the heap is small, and each is built in a process of its own.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { WAYS } from './multiplying-pod.ts';

const PROGRAM = join(import.meta.dirname, 'multiplying-pod.ts');
const HEAP_MIB = 512;
/** Memory outside of the heap counts, too: buffers, and Node itself. */
const RSS_MIB = 700;
const REFUSED =
  /^[^()]{1,300}(?:are larger than \d+ MiB together \(reached at [^()]{1,150}\)|is longer than 4095 bytes)/;

describe('a pod of the largest size', () => {
  for (const way of Object.keys(WAYS))
    it(way, async () => {
      const options = [`--max-old-space-size=${HEAP_MIB}`, '--disable-warning=ExperimentalWarning', PROGRAM, way];
      const { stdout } = await promisify(execFile)(process.execPath, options);
      const { ended, rssMiB } = JSON.parse(stdout) as { ended: string; rssMiB: number };
      assert.match(ended, REFUSED);
      assert.ok(rssMiB < RSS_MIB, `took ${rssMiB} MiB`);
    });
});
