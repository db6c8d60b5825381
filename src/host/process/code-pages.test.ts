import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { cleanFileMappings, dropCodePages } from './code-pages.ts';

const mapping = (head: string, ...figures: string[]): string =>
  [head, 'Size: 8 kB', ...figures, 'VmFlags: rd ex mr mw me', ''].join('\n');

it('finds what can be read from the file again, and nothing that was written to', () => {
  const smaps = [
    mapping('00400000-00402000 r-xp 00000000 fe:00 12 /usr/bin/node', 'Private_Dirty: 0 kB', 'Anonymous: 0 kB'),
    mapping('00402000-00404000 r--p 00002000 fe:00 12 /usr/bin/node', 'Private_Dirty: 4 kB', 'Anonymous: 4 kB'),
    mapping('00404000-00405000 r--p 00004000 fe:00 12 /usr/bin/node', 'Private_Dirty: 0 kB', 'Anonymous: 4 kB'),
    mapping('00405000-00406000 r--p 00005000 fe:00 12 /usr/bin/node', 'Private_Dirty: 0 kB', 'Swap: 4 kB'),
    mapping('00406000-00408000 rw-p 00006000 fe:00 12 /usr/bin/node', 'Private_Dirty: 0 kB', 'Anonymous: 0 kB'),
    mapping('00408000-0040a000 r-xp 00000000 00:00 0 ', 'Private_Dirty: 0 kB', 'Anonymous: 0 kB'),
    mapping('7ff000000000-7ff000002000 r-xp 00000000 00:00 0 [vdso]', 'Private_Dirty: 0 kB', 'Anonymous: 0 kB'),
    mapping(
      '7ff000004000-7ff000006000 r--p 0000 fe:00 13 /lib/with space.so',
      'Private_Dirty: 8 kB',
      'Anonymous: 0 kB',
    ),
  ].join('');
  assert.deepEqual(
    cleanFileMappings(smaps).map(({ start, length, path }) => [start, length, path]),
    [
      [0x400000n, 0x2000n, '/usr/bin/node'],
      [0x7ff000004000n, 0x2000n, '/lib/with space.so'],
    ],
  );
});

it('gives the pages of the program back and goes on running', async () => {
  const fileKb = (): number => Number(/^RssFile:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);
  const before = fileKb();
  await dropCodePages();
  const after = fileKb();
  assert.ok(after < before - 10_000, `${before} kB of files before, ${after} kB after`);
  assert.equal(JSON.parse(JSON.stringify({ still: 'here' })).still, 'here');
  assert.equal(new Intl.NumberFormat('de').format(1234.5), '1.234,5');
});
