// Whatever the kubelet depends on may freeze: it takes calls and never answers. A matrix of what freezes and of what must go
// on meanwhile; each cell has a bound. Every row is a kubelet process with a runtime in memory; all rows run at once, for
// they wait more than they work. The worst cell of each row is printed.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startTestApiServer, type TestApiServer } from '../../harness/api-server.ts';
import { connectClient } from '../../harness/connect-client.ts';
import { makeNodeFolder, removeNodeFolder } from '../../harness/node-folder.ts';
import { RowRun } from './row-run.ts';
import { COLUMNS, ROWS, type Column, type Row } from './rows.ts';

describe('a matrix of frozen parts', { skip: process.getuid?.() === 0 ? false : 'needs root' }, () => {
  let dir: string;
  let api: TestApiServer;
  const runs = new Map<string, RowRun>();

  before(async () => {
    dir = await makeNodeFolder();
    api = await startTestApiServer(join(dir, 'api'));
    const client = await connectClient(api.adminKubeconfigPath);
    for (const [i, row] of ROWS.entries()) {
      if (row.skip !== undefined && row.skip !== false) continue;
      const home = join(dir, `f${i}`);
      mkdirSync(home);
      const run = new RowRun(row, { name: `f${i}`, dir: home, api, client });
      runs.set(row.name, run);
      run.begin();
    }
  });

  after(async () => {
    await Promise.all([...runs.values()].map((run) => run.close()));
    await api?.stop();
    await removeNodeFolder(dir);
  });

  for (const row of ROWS)
    describe(`${row.name} frozen`, { skip: row.skip ?? false }, () => {
      for (const column of COLUMNS) {
        const { ms, from } = row.bounds[column];
        it(`${column}: within ${ms / 1000} s${from === 'thawed' ? ' of its return' : ''}`, async () => {
          const took = await runs.get(row.name)?.cell(column);
          assert.ok(took !== undefined && took <= ms, `took ${Math.round(took ?? Infinity)} ms`);
        });
      }
      it('prints the worst cell', async (t) => {
        const cells = await runs.get(row.name)?.finished();
        assert.ok(cells !== undefined);
        const worst = COLUMNS.toSorted((a, b) => share(row, b, cells) - share(row, a, cells))[0] ?? COLUMNS[0];
        t.diagnostic(
          `${row.name}: worst is ${worst}, ${Math.round(cells.get(worst) ?? Infinity)} ms of ${row.bounds[worst].ms}`,
        );
      });
    });
});

/** How much of its bound a cell used. */
const share = (row: Row, column: Column, cells: ReadonlyMap<Column, number>): number =>
  (cells.get(column) ?? Infinity) / row.bounds[column].ms;
