// What an open directory promises, by the file system's threads and at once.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { mountSync, unmountSync } from '../libc.ts';
import { atOnce, onThreads, type FileCalls } from './file-calls.ts';
import { OpenDir } from './open-dir.ts';
import { removeTree } from './remove-tree.ts';

let root: string;
const { signal } = new AbortController();
const MS_BIND = 4096;
/** What may be mounted in a tree; each says what can be seen there. A bind mount is on the same device as the tree itself. */
const MOUNTS: Readonly<Record<string, (kept: string, point: string) => string[]>> = {
  'another file system': (_kept, point) => {
    mountSync('tmpfs', point, 'tmpfs', 0, '');
    writeFileSync(join(point, 'precious'), '');
    return ['precious'];
  },
  'a bind mount': (kept, point) => {
    writeFileSync(join(kept, 'precious'), '');
    mountSync(kept, point, '', MS_BIND, '');
    return ['precious'];
  },
  'a bind mount of an empty directory': (kept, point) => {
    mountSync(kept, point, '', MS_BIND, '');
    return [];
  },
};
const modeOf = (path: string): number => statSync(path).mode & 0o7777;
/** Descriptors of this process at or below the directory: other tests in it open and close theirs. */
const openFiles = (): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      return target.startsWith(root) ? [target] : [];
    } catch {
      return []; // closed meanwhile
    }
  });

for (const [name, calls] of Object.entries({ onThreads, atOnce })) {
  describe(`an open directory, ${name}`, () => {
    let dir: OpenDir;
    beforeEach(async () => {
      root = mkdtempSync(join(tmpdir(), 'open-dir-'));
      dir = await OpenDir.open(root, calls);
    });
    afterEach(async () => {
      await dir.close();
      assert.deepEqual(openFiles(), [], 'nothing stays open');
      rmSync(root, { recursive: true });
    });

    it('gives what it makes exactly the mode asked for', async () => {
      for (const mode of [0o600, 0o644, 0o666, 0o640, 0o444])
        await dir.createFile(`f${mode}`, Buffer.from('x'), mode).then(() => {
          assert.equal(modeOf(join(root, `f${mode}`)), mode);
        });
      for (const mode of [0o700, 0o750, 0o755, 0o777, 0o2750, 0o1777]) {
        await (await dir.mkdir(`d${mode}`, mode)).close();
        assert.equal(modeOf(join(root, `d${mode}`)), mode);
      }
      await dir.createFile('owned', Buffer.from('x'), 0o400, 12_345);
      assert.deepEqual([statSync(join(root, 'owned')).uid, modeOf(join(root, 'owned'))], [12_345, 0o400]);
    });

    it('makes a file only where there is none, a directory where there is none yet', async () => {
      await dir.createFile('a', Buffer.from('1'), 0o644);
      await assert.rejects(dir.createFile('a', Buffer.from('2'), 0o644), { code: 'EEXIST' });
      assert.equal(readFileSync(join(root, 'a'), 'utf8'), '1');
      await (await dir.ensureDir('d', 0o750)).close();
      await (await dir.ensureDir('d', 0o700)).close();
      assert.equal(modeOf(join(root, 'd')), 0o750);
      symlinkSync('d', join(root, 'link'));
      await assert.rejects(dir.ensureDir('link', 0o750), /ELOOP|ENOTDIR/);
    });

    it('writes a file in place, and never through a link', async () => {
      await dir.overwriteFile('hosts', 'a long first text', 0o644);
      const { ino } = statSync(join(root, 'hosts'));
      await dir.overwriteFile('hosts', 'short', 0o644);
      assert.deepEqual([readFileSync(join(root, 'hosts'), 'utf8'), statSync(join(root, 'hosts')).ino], ['short', ino]);
      writeFileSync(join(root, 'victim'), 'whole');
      for (const make of [symlinkSync, linkSync]) {
        rmSync(join(root, 'hosts'));
        make(join(root, 'victim'), join(root, 'hosts'));
        await dir.overwriteFile('hosts', 'mine', 0o644);
        assert.equal(readFileSync(join(root, 'victim'), 'utf8'), 'whole');
        assert.equal(readFileSync(join(root, 'hosts'), 'utf8'), 'mine');
      }
      rmSync(join(root, 'hosts'));
      execFileSync('mkfifo', [join(root, 'hosts')]);
      await dir.overwriteFile('hosts', 'mine', 0o644);
      assert.ok(statSync(join(root, 'hosts')).isFile());
    });

    it('does not write what a file has', async () => {
      await dir.overwriteFile('hosts', 'text', 0o644);
      const { mtimeNs } = statSync(join(root, 'hosts'), { bigint: true });
      const refuse = (): never => assert.fail('it was written');
      await OpenDir.using(root, (own) => own.overwriteFile('hosts', 'text', 0o644), { ...calls, writeFile: refuse });
      assert.equal(statSync(join(root, 'hosts'), { bigint: true }).mtimeNs, mtimeNs);
    });

    it('names paths as they were opened in what it throws', async () => {
      const missing = { code: 'ENOENT', path: join(root, 'a', 'none') };
      await (await dir.mkdir('a', 0o700)).close();
      const below = await dir.openDir('a');
      await assert.rejects(below.openDir('none'), {
        ...missing,
        message: `ENOENT: no such file or directory, open '${missing.path}'`,
      });
      await assert.rejects(below.pin('none'), missing);
      await assert.rejects(async () => below.lchown('none', 0, 0), missing);
      await assert.rejects(async () => below.rename('nothing', 'none'), missing);
      await assert.rejects(
        below.createFile(Buffer.from([0xe9]).toString('latin1').repeat(200), Buffer.alloc(0), 0o600),
        {
          code: 'ENAMETOOLONG',
          path: join(root, 'a', 'é'.repeat(200)),
        },
      );
      await assert.rejects(below.openDir(Buffer.from([0x63, 0xe9])), { path: join(root, 'a', 'c\\xe9') });
      await below.close();
    });

    it('never leaves a file empty while it writes it', async () => {
      await dir.overwriteFile('hosts', 'a long first text', 0o644);
      const seen = new Set<string>();
      const look = (): void => void seen.add(readFileSync(join(root, 'hosts'), 'utf8'));
      const watched: FileCalls = {
        ...calls,
        open: (...args) => (look(), calls.open(...args)),
        writeFile: (...args) => (look(), calls.writeFile(...args)),
        ftruncate: (...args) => (look(), calls.ftruncate(...args)),
        close: (fd) => (look(), calls.close(fd)),
      };
      await OpenDir.using(root, (own) => own.overwriteFile('hosts', 'short', 0o644), watched);
      assert.deepEqual([...seen], ['a long first text', 'shortg first text', 'short']);
    });

    it('puts the old text back where the new one finds no room', async () => {
      const disk = join(root, 'disk');
      mkdirSync(disk);
      mountSync('tmpfs', disk, 'tmpfs', 0, 'size=64k');
      try {
        const own = await OpenDir.open(disk, calls);
        await own.overwriteFile('hosts', 'the old text', 0o644);
        const { ino } = statSync(join(disk, 'hosts'));
        assert.throws(() => writeFileSync(join(disk, 'full'), Buffer.alloc(2 ** 20)), { code: 'ENOSPC' });
        await assert.rejects(own.overwriteFile('hosts', 'the new text '.repeat(1_000), 0o644), {
          code: 'ENOSPC',
          message: `ENOSPC: no space left on device, write '${disk}/hosts': no space, or no inodes, are left on the file system of ${disk}/hosts`,
        });
        assert.equal(readFileSync(join(disk, 'hosts'), 'utf8'), 'the old text');
        await own.overwriteFile('hosts', 'a new text', 0o644);
        assert.equal(readFileSync(join(disk, 'hosts'), 'utf8'), 'a new text');
        assert.equal(statSync(join(disk, 'hosts')).ino, ino);
        await own.close();
      } finally {
        unmountSync(disk, 0);
      }
    });

    it('reads regular files up to a size', async () => {
      writeFileSync(join(root, 'f'), 'four');
      symlinkSync('f', join(root, 'link'));
      const text = async (entry: string, max: number): Promise<string | undefined> =>
        (await dir.readFile(entry, max))?.toString();
      assert.deepEqual(await Promise.all([text('f', 4), text('f', 3), text('link', 9), text('none', 9)]), [
        'four',
        undefined,
        undefined,
        undefined,
      ]);
      const pinned = await dir.pin('f');
      assert.equal(String(await pinned.read(4)), 'four');
      await assert.rejects(pinned.read(3), /larger than 3 bytes/);
      await pinned.close();
    });

    it('shows, points and moves names', async () => {
      await dir.symlink('nowhere', 'link');
      assert.equal(await dir.readlink('link'), 'nowhere');
      assert.equal(await dir.readlink('none'), undefined);
      await dir.rename('link', 'other');
      assert.equal(readlinkSync(join(root, 'other')), 'nowhere');
      assert.deepEqual(await dir.list(), ['other']);
      assert.equal((await dir.lstat('other'))?.isSymbolicLink(), true);
      await assert.rejects(async () => dir.rename('../x', 'y'), /is not the name of a directory entry/);
    });

    it('walks a huge directory name by name, and removes it in parts', async () => {
      const wide = join(root, 'wide');
      mkdirSync(wide);
      const long = 'x'.repeat(240);
      for (let i = 0; i < 1500; i++) writeFileSync(join(wide, `${long}${i}`), '');
      assert.ok(statSync(wide).size > 256 * 1024, 'large enough to be read in parts');
      const huge = await dir.openDir('wide');
      const seen = new Set<string>();
      const parts: number[] = [];
      for await (const names of huge.batches(await huge.stat())) {
        parts.push(names.length);
        for (const name of names) seen.add(String(name));
      }
      assert.deepEqual([seen.size, parts], [1500, [1024, 476]]);
      assert.equal((await huge.names((name) => name.endsWith('7'), 5)).length, 5);
      for await (const names of huge.batches(await huge.stat())) if (names.length > 0) break;
      await huge.close();
      await removeTree(dir, 'wide', signal);
      assert.equal(existsSync(wide), false);
    });

    for (const [what, mount] of Object.entries(MOUNTS))
      it(`refuses to remove a tree with ${what} in it, and leaves what is there`, async () => {
        const point = join(root, 'tree', 'deep', 'point');
        mkdirSync(point, { recursive: true });
        mkdirSync(join(root, 'kept'));
        const kept = mount(join(root, 'kept'), point);
        try {
          await assert.rejects(removeTree(dir, 'tree', signal), {
            kind: 'conflict',
            message: /point: it is a mount point/,
          });
          const deep = await OpenDir.open(join(root, 'tree', 'deep'), calls);
          await assert.rejects(removeTree(deep, 'point', signal), {
            kind: 'conflict',
            message: /point: it is a mount point/,
          });
          await deep.close();
          assert.deepEqual(readdirSync(point), kept);
        } finally {
          unmountSync(point, 0);
        }
        await removeTree(dir, 'tree', signal);
        assert.ok(!existsSync(join(root, 'tree')));
        assert.ok(existsSync(join(root, 'kept')));
      });

    it('removes a tree and nothing behind its links', async () => {
      mkdirSync(join(root, 'tree', 'below'), { recursive: true });
      writeFileSync(join(root, 'kept'), 'x');
      writeFileSync(join(root, 'tree', 'below', 'file'), 'x');
      symlinkSync(root, join(root, 'tree', 'up'));
      await removeTree(dir, 'tree', signal);
      await removeTree(dir, 'tree', signal);
      assert.deepEqual([existsSync(join(root, 'tree')), existsSync(join(root, 'kept'))], [false, true]);
    });
  });
}
