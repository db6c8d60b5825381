import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, read, rmSync, writeSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { nextTurn } from '../lib/clock.ts';
import {
  descriptorsOf,
  interfacesOf,
  openFilesLimitOf,
  parseBootMs,
  parseDiskstats,
  parseNetDev,
  parseOpenFilesLimit,
  parseSwapUsed,
  parseTasks,
  parseTopology,
} from './proc.ts';

test('interfaces, without loopback and the ends of containers’ cables', () => {
  const text = [
    'Inter-|   Receive                                                |  Transmit',
    ' face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed',
    '    lo: 848379633  825726    0    0    0     0          0         0 848379633  825726    0    0    0     0       0          0',
    '  eth0:381655950 1234 1 2    0     0          0         0 604156 567 3 4    0     0       0          0',
    'vethab12: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0',
    'docker0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0',
    'torn: 1 2',
  ].join('\n');
  assert.deepEqual(parseNetDev(text), [
    {
      name: 'eth0',
      rxBytes: 381655950,
      rxPackets: 1234,
      rxErrors: 1,
      rxDropped: 2,
      txBytes: 604156,
      txPackets: 567,
      txErrors: 3,
      txDropped: 4,
    },
  ]);
});

test('disks', () => {
  const line =
    ' 254       0 vda 102880 10923 6430882 60692 316547 159707 14680576 118528 1 44828 202920 99643 228 4917256';
  assert.deepEqual(
    parseDiskstats(`${line}\n   7  0 loop0 0 0\n`),
    new Map([
      [
        '254:0',
        {
          name: 'vda',
          reads: 102880,
          readsMerged: 10923,
          sectorsRead: 6430882,
          readMs: 60692,
          writes: 316547,
          writesMerged: 159707,
          sectorsWritten: 14680576,
          writeMs: 118528,
          ioInProgress: 1,
          ioMs: 44828,
          weightedIoMs: 202920,
        },
      ],
    ]),
  );
});

test('tasks, boot time, swap, limits', () => {
  assert.equal(parseTasks('1.52 1.70 1.39 3/811 12345\n'), 811);
  assert.equal(parseBootMs('cpu 1 2\nbtime 1794715410\nprocesses 5\n'), 1794715410000);
  assert.equal(parseSwapUsed('SwapTotal:       2048 kB\nSwapFree:        1024 kB\n'), 1024 * 1024);
  assert.equal(
    parseOpenFilesLimit('Max open files            20000                20001                files     \n'),
    20000,
  );
  assert.equal(
    parseOpenFilesLimit('Max open files            unlimited            unlimited            files     \n'),
    -1,
  );
  assert.equal(parseOpenFilesLimit(''), undefined);
});

test('files that say nothing count as nothing', () => {
  assert.deepEqual([parseTasks(''), parseBootMs(''), parseSwapUsed('')], [0, 0, 0]);
  assert.equal(parseOpenFilesLimit(''), undefined);
});

test('processors: cores and sockets, and a machine that names neither', () => {
  const cpu = (n: number, socket: number, core: number): string =>
    `processor\t: ${n}\nphysical id\t: ${socket}\ncore id\t\t: ${core}\n`;
  const hyperThreaded = [cpu(0, 0, 0), cpu(1, 0, 0), cpu(2, 1, 0), cpu(3, 1, 0)].join('\n');
  assert.deepEqual(parseTopology(hyperThreaded), { cores: 2, sockets: 2 });
  assert.deepEqual(parseTopology('processor\t: 0\n\nprocessor\t: 1\n'), { cores: 2, sockets: 1 });
  assert.deepEqual(parseTopology(''), { cores: 1, sockets: 1 });
});

test('this process, and one that is gone', async () => {
  const { signal } = new AbortController();
  const own = await descriptorsOf([process.pid], signal);
  assert.ok(own.files > 3 && own.sockets <= own.files);
  assert.ok(((await openFilesLimitOf(process.pid)) ?? 0) !== 0);
  assert.ok((await interfacesOf(process.pid)) !== undefined);
  const GONE = 2 ** 22 + 1;
  assert.deepEqual(await descriptorsOf([GONE], signal), { files: 0, sockets: 0 });
  assert.equal(await interfacesOf(GONE), undefined);
});

test('a socket is a descriptor of its own kind', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { files, sockets } = await descriptorsOf([process.pid], new AbortController().signal);
  server.close();
  assert.ok(sockets >= 1 && files > sockets, `${sockets} of ${files}`);
});

test('many descriptors are counted while others have their turn', async (t) => {
  const own = Array.from({ length: 2000 }, () => openSync('/dev/null', 'r'));
  t.after(() => own.forEach((fd) => closeSync(fd)));
  let turns = 0;
  let counting = true;
  const others = (async () => {
    for (; counting; turns++) await nextTurn();
  })();
  const { files } = await descriptorsOf([process.pid], new AbortController().signal);
  counting = false;
  await others;
  assert.ok(files > 2000 && turns >= 7, `${files} files in ${turns} turns`);
});

test('descriptors are counted also while all file threads are taken', async () => {
  const dir = mkdtempSync('/tmp/kts-proc-');
  const fifo = join(dir, 'fifo');
  execFileSync('mkfifo', [fifo]);
  const pipe = openSync(fifo, 'r+');
  const taken = Array.from(
    { length: 4 },
    () =>
      new Promise((resolve) => {
        read(pipe, Buffer.alloc(1), 0, 1, null, resolve);
      }),
  );
  try {
    assert.ok((await descriptorsOf([process.pid], new AbortController().signal)).files > 3);
  } finally {
    // Not in a hook: the test runner itself may need a file thread before it calls one.
    writeSync(pipe, Buffer.alloc(taken.length));
    await Promise.all(taken);
    closeSync(pipe);
    rmSync(dir, { recursive: true });
  }
});

test('a process that is gone has nothing open and no limits', async () => {
  const gone = 2 ** 22 + 1; // larger than any
  assert.deepEqual(await descriptorsOf([gone], new AbortController().signal), { files: 0, sockets: 0 });
  assert.equal(await openFilesLimitOf(gone), undefined);
});
