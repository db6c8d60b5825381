import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { until } from '../../../test/harness/until.ts';
import { systemClock } from '../../lib/clock.ts';
import { silentLogger } from '../../lib/logger.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import { ProjectQuotas, type ProjectQuotasOpts } from './project-quotas.ts';

const { signal } = new AbortController();

/** Answers by the last part of the path; `silent` is never answered, `crash` ends it, `half` ends it amid its answer. */
const STAND_IN = `
const project = { a: 1048577, b: 1048578 };
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { number, request } = JSON.parse(line);
  const name = request.path.split('/').at(-1);
  if (name === 'silent') return;
  if (name === 'crash') process.exit(1);
  if (name === 'half') return process.stdout.write('{"number":', () => process.exit(1));
  const answer = request.do === 'usage' ? { usage: { bytes: process.pid, inodes: request.project } } : {};
  if (request.do === 'assign') Object.assign(answer, name in project ? { project: project[name] } : { error: 'no', unsupported: true });
  console.log(JSON.stringify({ number, ...answer }));
});`;

function quotas(t: TestContext, opts: ProjectQuotasOpts = {}, clock = systemClock): ProjectQuotas {
  const command = [process.execPath, '-e', STAND_IN, '--'];
  const made = new ProjectQuotas({ clock, log: silentLogger }, { command, ...opts });
  t.after(() => made.close());
  return made;
}

describe('the process for quotas', () => {
  it('is asked about directories with a project, and stays', async (t) => {
    const asked = quotas(t);
    assert.deepEqual(await Promise.all(['/v/a', '/v/b', '/v/tmpfs'].map((path) => asked.assign(path, signal))), [
      true,
      true,
      false,
    ]);
    const [a, b] = await Promise.all(['/v/a', '/v/b'].map((path) => asked.usageOf(path, signal)));
    assert.equal(a?.bytes, b?.bytes, 'the same process');
    assert.deepEqual([a?.inodes, b?.inodes], [1_048_577, 1_048_578]);
    assert.equal(await asked.usageOf('/v/tmpfs', signal), undefined);
    await asked.clear('/v/a', signal);
    assert.equal(await asked.usageOf('/v/a', signal), undefined);
  });

  it('is not started for directories that were never given a project', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'quotas-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const files = { projects: join(dir, 'projects'), projid: join(dir, 'projid') };
    const marker = join(dir, 'started');
    const command = [process.execPath, '-e', `require('fs').writeFileSync(${JSON.stringify(marker)}, '')`, '--'];
    const asked = quotas(t, { files, command });
    await asked.clear('/v/a', signal);
    writeFileSync(files.projects, '1048577:/v/a\n');
    await asked.clear('/v/b', signal);
    assert.equal(await asked.usageOf('/v/a', signal), undefined);
    assert.throws(() => rmSync(marker), { code: 'ENOENT' });
    // Given by an earlier run.
    await asked.clear('/v/a', signal);
    rmSync(marker);
  });

  it('sees nothing of the environment of the agent', async (t) => {
    process.env['PLANTED'] = '1';
    t.after(() => delete process.env['PLANTED']);
    const script = STAND_IN.replaceAll("name === 'crash'", "'PLANTED' in process.env");
    const asked = quotas(t, { command: [process.execPath, '-e', script, '--'] });
    assert.equal(await asked.assign('/v/a', signal), true);
  });

  it('is given up when it does not answer in time, and left alone for a while', async (t) => {
    const clock = new ManualClock();
    const asked = quotas(t, { deadlineMs: 10_000, restMs: 60_000 }, clock);
    assert.ok(await asked.assign('/v/a', signal));
    const first = (await asked.usageOf('/v/a', signal))?.bytes;
    const stuck = asked.assign('/v/silent', signal);
    const behind = asked.assign('/v/b', signal);
    assert.ok(await behind);
    await clock.advance(10_001);
    assert.equal(await stuck, false);
    await until('the process is gone', () => !isAlive(first ?? 0));
    assert.equal(await asked.usageOf('/v/a', signal), undefined, 'not asked again so soon');
    await clock.advance(60_001);
    const second = (await asked.usageOf('/v/a', signal))?.bytes;
    assert.ok(second !== undefined && second !== first);
  });

  it('may end; whoever asked then gets no answer', async (t) => {
    const clock = new ManualClock();
    const asked = quotas(t, {}, clock);
    for (const path of ['/v/crash', '/v/half']) {
      assert.equal(await asked.assign(path, signal), false);
      await clock.advance(60_001);
    }
    assert.ok(await asked.assign('/v/a', signal));
  });

  it('ends when nobody has asked for long', async (t) => {
    const clock = new ManualClock();
    const asked = quotas(t, { idleMs: 300_000 }, clock);
    assert.ok(await asked.assign('/v/a', signal));
    const first = (await asked.usageOf('/v/a', signal))?.bytes ?? 0;
    await clock.advance(299_000);
    assert.equal((await asked.usageOf('/v/a', signal))?.bytes, first);
    await clock.advance(300_001);
    await until('the process is gone', () => !isAlive(first));
    assert.ok(((await asked.usageOf('/v/a', signal))?.bytes ?? first) !== first);
  });

  it('does not keep whoever is called off', async (t) => {
    const asked = quotas(t);
    const own = new AbortController();
    const stuck = asked.assign('/v/silent', own.signal);
    own.abort(new Error('called off'));
    await assert.rejects(stuck, /called off/);
    assert.ok(await asked.assign('/v/a', signal), 'others go on');
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
