// The node page in a real browser on a real node: every view, what it hides, and who is kept out.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Browser, browserProgram, type BrowserPage } from '../harness/browser.ts';
import { send, type Answer, type Credential } from '../contracts/server/http-client.ts';
import { until, untilSeen } from '../harness/until.ts';
import { NAMESPACE, PLANTED, startScene, type PageScene } from './node-page-scene.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** Which view is shown in the README how. */
const SHOWN = ['pods-dark', 'now', 'pod', 'images', 'timeline-dark', 'workers-dark', 'pods-narrow'];
/** With this set the pictures of the README are taken anew. */
const PICTURES = process.env['NODE_PAGE_PICTURES'] === '1';
const AXE = readFileSync(join(ROOT, 'node_modules', 'axe-core', 'axe.min.js'), 'utf8');

const skip = process.getuid?.() !== 0 || browserProgram() === undefined ? 'needs root and chromium' : false;

const VIEWS: readonly (readonly [name: string, hash: string, shows: RegExp])[] = [
  ['now', '#/', /eviction thresholds[\s\S]*memory\.available/i],
  ['pods', '#/pods', /ends with exit code 3/],
  ['pod', `#/pod/${NAMESPACE}/web`, /Start took [\s\S]*GET \/ok 200/],
  ['images', '#/images', /team\/training:2\.4\s+\d+ % · .* left[\s\S]*1st to go[\s\S]*localhost\/busybox/],
  ['timeline', '#/timeline', /Ended with exit code 3/],
  ['workers', '#/workers', /broken\.yaml:6:5/],
];

/** Any headers at all, which fetch would not let us send. */
function ask(port: number, path: string, headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text: string) => (body += text));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body }));
    });
    sent.on('error', reject);
    sent.on('upgrade', (answer, socket) => {
      socket.destroy();
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: '' });
    });
    sent.end();
  });
}

describe('the node page', { skip }, () => {
  let scene: PageScene;
  let browser: Browser;
  let page: BrowserPage;
  before(async () => {
    [scene, browser] = await Promise.all([startScene(), Browser.start()]);
    page = await browser.page();
    await page.size(1280, 900);
  });
  after(async () => {
    await browser?.stop();
    await scene?.stop();
  });

  const go = async (hash: string, shows: RegExp): Promise<void> => {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await page.shows(shows);
  };
  const bearer = (): Record<string, string> => ({ authorization: `Bearer ${scene.token}` });

  it('lets nobody in without the token', async () => {
    const { port, token } = scene;
    const host = `127.0.0.1:${port}`;
    assert.equal((await ask(port, '/page/')).status, 401);
    assert.equal((await ask(port, '/page/api/pods')).status, 401);
    assert.equal((await ask(port, '/page/assets/app.js')).status, 401);
    const other = `${token.slice(0, -1)}${token.endsWith('x') ? 'y' : 'x'}`;
    assert.equal((await ask(port, `/page/?token=${other}`)).status, 401);
    assert.equal((await ask(port, '/page/api/pods', { authorization: 'Bearer wrong' })).status, 401);
    assert.equal((await ask(port, '/page/api/pods', { ...bearer(), host })).status, 200);
    const refused = await ask(port, '/page/');
    assert.match(String(refused.headers['content-security-policy']), /default-src 'none'.*frame-ancestors 'none'/);
  });

  it('keeps out other names of the host, other sites, and web sockets of theirs', async () => {
    const { port } = scene;
    const host = `127.0.0.1:${port}`;
    assert.equal((await ask(port, '/page/api/pods', { ...bearer(), host: `rebound.example:${port}` })).status, 403);
    assert.equal((await ask(port, '/page/api/pods', { ...bearer(), host, origin: 'http://evil.example' })).status, 403);
    assert.equal(
      (await ask(port, '/page/api/pods', { ...bearer(), host, 'sec-fetch-site': 'cross-site' })).status,
      403,
    );
    const upgrade = {
      ...bearer(),
      host,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-protocol': 'v4.channel.k8s.io',
    };
    const path = `/page/exec/${NAMESPACE}/web/web?command=true&output=1`;
    assert.equal((await ask(port, path, { ...upgrade, origin: 'http://evil.example' })).status, 403);
    await untilSeen(
      'the pod runs',
      async () => (await ask(port, path, { ...upgrade, origin: `http://${host}` })).status,
      (seen) => seen === 101,
    );
  });

  it('takes the token out of the address and gives a cookie that scripts and other sites do not get', async () => {
    await page.open(`${scene.origin}/?token=${scene.token}`);
    await page.shows('Ready');
    assert.equal(await page.evaluate('location.href'), `${scene.origin}/page/`);
    assert.equal(await page.evaluate('document.cookie'), '');
    const { cookies } = await page.send<{ cookies: { httpOnly: boolean; sameSite: string; path: string }[] }>(
      'Network.getCookies',
    );
    assert.deepEqual(
      cookies.map(({ httpOnly, sameSite, path }) => ({ httpOnly, sameSite, path })),
      [{ httpOnly: true, sameSite: 'Strict', path: '/page/' }],
    );
  });

  it('cannot be framed nor read by another site in the same browser', async () => {
    const html = `<!doctype html><iframe src="${scene.origin}/page/"></iframe>`;
    const other: Server = createServer((_, response) => {
      response.setHeader('Content-Type', 'text/html');
      response.end(html);
    });
    await once(other.listen(0, '127.0.0.1'), 'listening');
    const stranger = await browser.page();
    try {
      // The same address and another port: the same site for cookies, and still a stranger.
      await stranger.open(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`);
      const read = `fetch('${scene.origin}/page/api/pods', { credentials: 'include' }).then((r) => r.text(), () => 'refused')`;
      assert.equal(await stranger.evaluate(read), 'refused');
      const frameUrl = await until('the frame was tried', async () => {
        const { frameTree } = await stranger.send<{ frameTree: { childFrames?: { frame: { url: string } }[] } }>(
          'Page.getFrameTree',
        );
        return frameTree.childFrames?.[0]?.frame.url;
      });
      assert.match(frameUrl, /^chrome-error:/);
    } finally {
      await stranger.close();
      await page.toFront();
      other.close();
    }
  });

  for (const [name, hash, shows] of VIEWS)
    it(`shows ${name}, wide and narrow, without serious findings of axe`, async () => {
      if (PICTURES && name === 'now') await enoughHistory();
      await go(hash, shows);
      for (const [width, height, dark] of [
        [1280, 900, false],
        [1280, 900, true],
        [390, 844, false],
      ] as const) {
        await page.size(width, height, { dark });
        await page.shows(shows);
        assert.ok(
          (await page.evaluate<number>('document.documentElement.scrollWidth')) <= width,
          `${name} is wider than ${width}`,
        );
        if (PICTURES) await picture(name, width, dark);
        assert.deepEqual(await findings(), [], `${name} at ${width}, ${dark ? 'dark' : 'light'}`);
      }
      await page.size(1280, 900);
      assert.deepEqual(page.complaints, []);
    });

  const findings = async (): Promise<readonly string[]> => {
    // The page's own policy keeps scripts of others out; the debugger may bring one.
    if ((await page.evaluate('typeof axe')) !== 'object') await page.send('Runtime.evaluate', { expression: AXE });
    const found = await page.evaluate<{ id: string; impact: string; nodes: string[] }[]>(
      `axe.run({ exclude: ['.log > :nth-child(n + 10)'] }, { resultTypes: ['violations'] }).then(({ violations }) =>
        violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.slice(0, 3).map((n) => n.html.slice(0, 160)) })))`,
    );
    return found
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.join(' | ')}`);
  };

  /** Nobody learns anything from lines that have just begun. */
  const enoughHistory = async (): Promise<void> =>
    until(
      'the node has run for two minutes',
      async () => {
        const { body } = await ask(scene.port, '/page/api/now', bearer());
        return (JSON.parse(body) as { history: { series: { cpu: unknown[] } } }).history.series.cpu.length > 12;
      },
      180_000,
    ).then(() => undefined);

  const picture = async (name: string, width: number, dark: boolean): Promise<void> => {
    const title = `${name}${dark ? '-dark' : ''}${width < 600 ? '-narrow' : ''}`;
    if (!SHOWN.includes(title)) return;
    const dir = join(ROOT, 'docs', 'img');
    mkdirSync(dir, { recursive: true });
    const tall = Math.min(1000, await page.evaluate<number>('document.documentElement.scrollHeight'));
    if (width > 600) await page.size(width, tall, { dark });
    writeFileSync(join(dir, `node-page-${title}.png`), await page.screenshot());
  };

  it('keeps filter and order in the address, and can be used by keyboard', async () => {
    await go('#/pods', /crashing/);
    await page.evaluate('document.activeElement.blur()');
    await page.key('/', '/');
    assert.equal(await page.evaluate('document.activeElement.type'), 'search');
    for (const letter of 'crash') await page.key(letter, letter);
    await untilSeen(
      'the filter is in the address',
      () => page.evaluate('location.hash'),
      (seen) => seen === '#/pods?q=crash',
    );
    const rows = (): Promise<number> => page.evaluate('document.querySelectorAll("tbody tr").length');
    await untilSeen('one pod is left', rows, (seen) => seen === 1);
    await page.evaluate(`location.hash = '#/pods?sort=name&order=desc'`);
    await untilSeen(
      'the order follows the address',
      () => page.evaluate('document.querySelector("tbody .c-name a").textContent'),
      (seen) => seen === 'web',
    );
    assert.equal(await page.evaluate('document.querySelector("th[aria-sort]").ariaSort'), 'descending');
  });

  it('follows the logs of all containers of a pod', async () => {
    await go(`#/pod/${NAMESPACE}/web`, /scraped \d+/);
    const last = (): Promise<number> =>
      page.evaluate(
        `Number([...document.querySelectorAll('.log .text')].map((e) => /200 (\\d+)/.exec(e.textContent)?.[1]).filter(Boolean).at(-1))`,
      );
    const seen = await last();
    await untilSeen('more lines come', last, (got) => got > seen + 1);
    const order = await page.evaluate<string[]>(`[...document.querySelectorAll('.log time')].map((e) => e.title)`);
    assert.deepEqual(order, order.toSorted());
  });

  it('has a terminal where it may write', async () => {
    await go(`#/pod/${NAMESPACE}/web`, /Open a shell/);
    const click = `[...document.querySelectorAll('button')].find((b) => b.textContent === 'Open a shell').click()`;
    await page.evaluate(click);
    await until('the shell is open', async () => {
      // The browser gives up a connection it is making when an address comes or goes on the machine.
      if (await page.evaluate(`document.body.innerText.includes('Closed')`)) await page.evaluate(click);
      return page.evaluate<boolean>(`document.activeElement.classList.contains('screen')`);
    });
    for (const letter of 'echo it is $((6*7))') await page.key(letter, letter);
    await page.key('Enter', '\r');
    await page.shows(/^it is 42$/m);
    assert.deepEqual(page.complaints, []);
  });

  it('shows a pod that comes and goes without being asked again', async () => {
    await go('#/pods', /crashing/);
    const manifest = readFileSync(join(scene.node.manifests, 'agent.yaml'), 'utf8').replace(
      'name: agent',
      'name: visitor',
    );
    writeFileSync(join(scene.node.manifests, 'visitor.yaml'), manifest);
    await page.shows('visitor-n1');
    await go('#/pod/system/visitor-n1', /Start took [\d.]+ m?s$/m);
    await go('#/pods', /visitor-n1/);
    rmSync(join(scene.node.manifests, 'visitor.yaml'));
    await until(
      'it is gone',
      async () => !(await page.evaluate<string>('document.body.innerText')).includes('visitor-n1'),
    );
    await go('#/workers', /Pod workers/i);
    await until(
      'its worker is done',
      async () => !(await page.evaluate<string>('document.body.innerText')).includes('visitor-n1'),
    );
    // Its next start is shown against this one.
    writeFileSync(join(scene.node.manifests, 'visitor.yaml'), manifest);
    await page.shows('visitor-n1');
    await go('#/pod/system/visitor-n1', /Start took [\d.]+ m?s · the one before took [\d.]+ m?s/);
  });

  it('tells no secret in any answer', async () => {
    const { port } = scene;
    const needles = [...PLANTED, ...PLANTED.map((text) => Buffer.from(text).toString('base64')), scene.token];
    const { pods } = JSON.parse((await ask(port, '/page/api/pods', bearer())).body) as {
      pods: { namespace: string; name: string }[];
    };
    assert.ok(pods.length >= 7);
    const paths = ['', 'now', 'pods', 'images', 'timeline', 'workers'].map(
      (name) => `/page/${name === '' ? '' : `api/${name}`}`,
    );
    for (const { namespace, name } of pods) paths.push(`/page/api/pods/${namespace}/${name}`);
    for (const path of paths) {
      const { status, body } = await ask(port, path, bearer());
      assert.equal(status, 200, path);
      for (const needle of needles) assert.ok(!body.includes(needle), `${needle} is in ${path}`);
    }
    const shown = await ask(port, `/page/api/pods/${NAMESPACE}/web`, bearer());
    assert.match(shown.body, /DB_PASSWORD/);
  });

  /** The PEM of a client that the cluster's authority vouches for. */
  const client = (user: string, groups: readonly string[]): { cert: string; key: string } => {
    const hour = 3_600_000;
    const validity = { notBeforeMs: Date.now() - hour, notAfterMs: Date.now() + hour };
    const pem = scene.node.api.issueClient(user, groups, validity);
    return { cert: pem, key: pem };
  };

  it('is on the main port too, for those who may use it, read-only', async () => {
    const main = { host: '127.0.0.1', port: scene.node.port, tls: true };
    const status = async (target: typeof main, path: string, headers = {}): Promise<number> =>
      (await send(target, 'GET', path, { headers })).status;
    const token = { authorization: `Bearer ${scene.token}` };
    const nobody = { ...main, as: client('nobody', []) };
    for (const path of [
      '/page/',
      '/page/api/now',
      '/page/assets/app.js',
      '/page/api/live',
      '/page/api/logs/shop/web',
    ]) {
      assert.equal(await status(main, path), 401, path);
      assert.equal(await status(main, path, token), 401, `the page's own token opens ${path}`);
      assert.equal(await status(nobody, path), 403, path);
    }
    const as = { ...main, as: client('kubernetes-admin', ['system:masters']) };
    const answer = await send(as, 'GET', '/page/api/now');
    assert.equal(answer.status, 200);
    assert.equal((JSON.parse(answer.body) as { node: { write: boolean } }).node.write, false);
    assert.equal(await status(as, '/page/'), 200);
    assert.equal(await status(as, '/page/api/now', { 'sec-fetch-site': 'cross-site' }), 403);
    assert.equal(await status(as, '/page/api/now', { origin: 'https://evil.example' }), 403);
    assert.equal(await status(as, `/page/exec/${NAMESPACE}/web/web`), 404);
  });

  it('remembers over a restart of the agent, and is read-only unless told otherwise', async () => {
    const { node, port } = scene;
    const entries = async (): Promise<{ kind: string; text: string }[]> =>
      (
        JSON.parse((await ask(port, '/page/api/timeline', bearer())).body) as {
          entries: { kind: string; text: string }[];
        }
      ).entries;
    const starts = (await entries()).filter((e) => e.kind === 'agent' && e.text.startsWith('Starting')).length;
    await go('#/timeline', /Ended with exit code 3/);
    await node.kubelet.kill('SIGTERM');
    node.kubelet.flags = node.kubelet.flags.filter((flag) => flag !== '--node-page-write');
    await node.kubelet.start(node.healthzPort);
    await until('the new agent tells of both starts', async () => {
      const now = await entries().catch(() => []);
      return now.filter((e) => e.kind === 'agent' && e.text.startsWith('Starting')).length > starts;
    });
    // The page comes back by itself: the cookie is as good as before.
    await until('the page is connected again', () =>
      page.evaluate<boolean>(`!document.body.classList.contains('stale')`),
    );
    await page.shows(/Starting kubelet[\s\S]*Starting kubelet/);
    const exec = await ask(port, `/page/exec/${NAMESPACE}/web/web?command=true&output=1`, bearer());
    assert.equal(exec.status, 404);
    await page.open('about:blank');
    await page.open(`${scene.origin}/page/#/pod/${NAMESPACE}/web`);
    await page.shows(/scraped \d+/);
    assert.equal(await page.evaluate(`document.querySelector('.screen')`), null);
  });

  it('has TLS beyond this machine, for the token and for certificates that the main port would let in', async () => {
    const { node, port, token } = scene;
    await page.open('about:blank');
    await node.kubelet.kill('SIGTERM');
    node.kubelet.flags = [...node.kubelet.flags, '--node-page-address=0.0.0.0'];
    await node.kubelet.start(node.healthzPort);
    const own = { host: '127.0.0.1', port, tls: true };
    const ask = (as: Credential, headers: Record<string, string> = {}, path = '/page/api/pods'): Promise<Answer> =>
      send({ ...own, as }, 'GET', path, { headers });
    await untilSeen(
      'the page answers',
      async () => (await ask({}).catch(() => undefined))?.status,
      (seen) => seen === 401,
    );
    await assert.rejects(send({ ...own, tls: false }, 'GET', '/page/'), 'without TLS');
    assert.equal((await ask({ token })).status, 200);
    assert.equal((await ask({ token: 'wrong' })).status, 401);
    assert.equal((await ask({ token }, { host: `rebound.example:${port}` })).status, 403);
    assert.equal((await ask({ token }, { host: `n1:${port}` })).status, 200);
    const admin = client('kubernetes-admin', ['system:masters']);
    assert.equal((await ask(admin)).status, 200);
    assert.equal((await ask(client('nobody', []))).status, 403);
    // A browser sends its certificate along with whatever another site asks for.
    assert.equal((await ask(admin, { 'sec-fetch-site': 'cross-site' })).status, 403);
    assert.equal((await ask(admin, { origin: 'https://evil.example' })).status, 403);
    assert.equal((await ask(admin, { host: `rebound.example:${port}` })).status, 403);
    const entered = await ask({}, {}, `/?token=${token}`);
    assert.equal(entered.status, 303);
    assert.match(String(entered.headers['set-cookie']), /HttpOnly; SameSite=Strict; Secure$/);
  });
});
