// The commands against a socket that answers as a kubelet would.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { systemClock } from '../lib/clock.ts';
import { nodeCommand } from './node-command.ts';

const root = mkdtempSync(join(tmpdir(), 'kts-cli-'));
const socket = join(root, 'k.sock');
const why = (state: string) => ({ state, cause: 'X', sentence: 'It\u001B[31m fails.', evidence: [], todo: '' });
const ANSWERS: Readonly<Record<string, unknown>> = {
  '/debug/why/shop/web': { namespace: 'shop', name: 'web', why: why('failing') },
  '/debug/why/default/db': { namespace: 'default', name: 'db', why: why('ready') },
  '/debug/why': { pods: [{ namespace: 'shop', name: 'web', why: why('progressing') }] },
  '/debug/events?namespace=shop&name=web': { events: [] },
  '/debug/events?': {
    events: [{ metadata: { name: 'e' }, involvedObject: { kind: 'Node', name: 'n' }, reason: 'Hello' }],
  },
  '/debug/pulls': { pulls: [] },
  '/page/api/workers': {
    problems: [
      { source: 'file', where: '/m/a.yaml', severity: 'error', line: 4, column: 1, message: 'Tabs.', since: '' },
    ],
  },
  '/configz': { kubeletconfig: { failSwapOn: false, containerRuntimeEndpoint: 'unix:///nowhere.sock' } },
};
const server = createServer((request, response) => {
  if (request.url === '/statusz') {
    // There only as text, for those who say that they take it.
    response.statusCode = /\btext\/plain\b/.test(request.headers.accept ?? '') ? 200 : 406;
    response.end('kubelet statusz');
    return;
  }
  const found = ANSWERS[request.url ?? ''];
  response.statusCode = found === undefined ? 404 : 200;
  response.end(found === undefined ? `no ${request.url}\n` : JSON.stringify(found));
});
before(() => new Promise<void>((ready) => server.listen(socket, ready)));
after(() => {
  server.closeAllConnections();
  server.close();
  rmSync(root, { recursive: true, force: true });
});

/** On a terminal where there is somebody to interrupt it, after the first drawing. */
async function run(words: string, interrupt?: AbortController) {
  let [out, err] = ['', ''];
  const io = {
    out: (text: string) => {
      out += text;
      if (text.includes('\u001B[J')) interrupt?.abort();
    },
    err: (text: string) => void (err += text),
    columns: 20,
    rows: 4,
    isTerminal: interrupt !== undefined,
  };
  const argv = [...words.split(' '), '--socket', socket];
  const { signal } = interrupt ?? new AbortController();
  const code = await nodeCommand(argv, { clock: systemClock, io }, signal);
  return { out, err, code };
}

describe('kubelet node', () => {
  for (const [words, code, out] of [
    ['why shop/web', 1, 'shop/web: It\uFFFD[31m fails.\n'],
    ['why db', 0, 'default/db: It\uFFFD[31m fails.\n'],
    [
      'why',
      1,
      'POD       STATE        WHY\nshop/web  progressing  It\uFFFD[31m fails.\n\nProblems in manifests:\n  /m/a.yaml:4:1: Tabs.\n',
    ],
    ['events shop/web', 0, 'No events.\n'],
    ['pulls', 0, 'No images are being pulled.\n'],
    ['pulls -o json', 0, '{"pulls":[]}\n'],
  ] as const)
    it(`${words}: ${code}`, async () => {
      assert.deepEqual(await run(words), { out, err: '', code });
    });

  it('says what is wrong in one line, with a code for each kind', async () => {
    assert.deepEqual(await run('why nobody'), {
      out: '',
      err: 'kubelet node: no /debug/why/default/nobody\n',
      code: 4,
    });
    let err = '';
    const io = { out: () => undefined, err: (t: string) => void (err += t), columns: 80, rows: 24, isTerminal: false };
    const { signal } = new AbortController();
    assert.equal(await nodeCommand(['top', '--root-dir=/nowhere'], { clock: systemClock, io }, signal), 3);
    assert.match(err, /^kubelet node: no kubelet answers at \/nowhere\/node\/kubelet\.sock: is it running\?/);
    assert.deepEqual(await run('top'), {
      out: '',
      err: 'kubelet node: this kubelet does not show its views: is enableDebuggingHandlers off?\n',
      code: 1,
    });
    assert.equal((await run('fly')).code, 2);
    assert.match((await run('help')).out, /^Usage: kubelet node/);
  });

  it('draws anew on a terminal until it is interrupted', async () => {
    const stop = new AbortController();
    const { out, code } = await run('pulls', stop);
    assert.equal(code, 0);
    assert.ok(out.startsWith('\u001B[?1049h'), JSON.stringify(out));
    assert.ok(out.includes('No images are being…\u001B[K\n\u001B[J'), JSON.stringify(out));
    assert.ok(out.endsWith('\u001B[?1049l'));
  });

  it('doctor uses the settings of the kubelet', async () => {
    const { out, code } = await run(`doctor -o json --root-dir ${root}`);
    const { findings } = JSON.parse(out) as { findings: { subject: string; level: string; text: string }[] };
    const of = (subject: string) => findings.filter((f) => f.subject === subject);
    assert.equal(code, 1);
    assert.match(of('runtime')[0]?.text ?? '', /^unix:\/\/\/nowhere\.sock does not answer/);
    assert.deepEqual(of('kubelet')[0]?.level, 'ok');
  });

  it('a bundle holds what there is and names what there is not', async () => {
    const file = join(root, 'b.tar.gz');
    const { out, code } = await run(`support-bundle ${file} -o json`);
    assert.equal(code, 0);
    const { contents, missing } = JSON.parse(out) as { contents: string[]; missing: { name: string }[] };
    for (const name of ['why.json', 'doctor.txt', 'version.txt']) assert.ok(contents.includes(name), name);
    assert.ok(missing.some((m) => m.name === 'pods.json'));
    const text = gunzipSync(readFileSync(file)).toString();
    assert.match(text, /kubelet-support-\d{8}T\d{6}Z\/why\.json/);
    assert.equal(statSync(file).mode & 0o777, 0o600);
  });

  it('a bundle is never written over a file or through a link', async () => {
    const precious = join(root, 'precious');
    writeFileSync(precious, 'precious');
    const [link, dangling] = [join(root, 'link.tar.gz'), join(root, 'dangling.tar.gz')];
    symlinkSync(precious, link);
    symlinkSync(join(root, 'made'), dangling);
    for (const file of [precious, link, dangling]) {
      const { err, code } = await run(`support-bundle ${file}`);
      assert.equal(code, 1);
      assert.match(err, /exists already: remove it, or name another file/);
    }
    assert.equal(readFileSync(precious, 'utf8'), 'precious');
    assert.equal(existsSync(join(root, 'made')), false);
  });
});
