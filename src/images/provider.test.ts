import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { until } from '../../test/harness/until.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { Registry } from '../lib/metrics.ts';
import { Credentials } from './credentials.ts';
import { hashProviderConfigs, loadProviderConfigs, parseProviderConfig } from './provider-config.ts';
import type { ServiceAccountIdentity } from './provider-plugin.ts';
import { parseImageName } from './reference.ts';

const root = mkdtempSync(join(tmpdir(), 'kts-provider-'));
after(() => rmSync(root, { recursive: true, force: true }));
const forever = new AbortController().signal;
const POD = { metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec: { containers: [] } };
const V1 = 'credentialprovider.kubelet.k8s.io/v1';

const provider = (more: object = {}): object => ({
  name: 'plug',
  matchImages: ['*.reg.io'],
  defaultCacheDuration: '1h',
  apiVersion: V1,
  ...more,
});
const config = (...providers: object[]): object => ({
  kind: 'CredentialProviderConfig',
  apiVersion: 'kubelet.config.k8s.io/v1',
  providers,
});

describe('credential provider configuration', () => {
  it('reads a good one', () => {
    const { providers, problems } = parseProviderConfig(
      config(provider({ args: ['a'], env: [{ name: 'X', value: 'y' }] })),
    );
    assert.deepEqual(problems, []);
    assert.equal(providers[0]?.defaultCacheMs, 3_600_000);
    assert.deepEqual([providers[0]?.args, providers[0]?.env], [['a'], [{ name: 'X', value: 'y' }]]);
  });

  const attributes = { serviceAccountTokenAudience: 'aud', cacheType: 'Token', requireServiceAccount: true };
  const bad: readonly (readonly [string, object, RegExp])[] = [
    ['no providers', config(), /at least 1 item/],
    ['another kind', { ...config(provider()), kind: 'X' }, /not a CredentialProviderConfig/],
    ['no name', config(provider({ name: '' })), /providers\[0\]\.name: Required/],
    ['a path as name', config(provider({ name: '../x' })), /path separators/],
    ['twice the same', config(provider(), provider()), /providers\[1\]\.name: Duplicate value: "plug"/],
    ['no images', config(provider({ matchImages: [] })), /matchImages: Required/],
    ['a bad image', config(provider({ matchImages: ['a b'] })), /matchImages\[0\]: Invalid/],
    ['no version', config(provider({ apiVersion: '' })), /apiVersion: Required/],
    ['another version', config(provider({ apiVersion: 'v2' })), /Unsupported value: "v2"/],
    ['no cache duration', config(provider({ defaultCacheDuration: undefined })), /defaultCacheDuration: Required/],
    ['a negative one', config(provider({ defaultCacheDuration: '-1s' })), /zero or more/],
    [
      'no audience',
      config(provider({ tokenAttributes: { ...attributes, serviceAccountTokenAudience: '' } })),
      /Audience: Required/,
    ],
    [
      'no cache type',
      config(provider({ tokenAttributes: { ...attributes, cacheType: 'X' } })),
      /cacheType: Unsupported/,
    ],
    [
      'tokens for an old version',
      config(provider({ apiVersion: 'credentialprovider.kubelet.k8s.io/v1beta1', tokenAttributes: attributes })),
      /only supported for/,
    ],
    [
      'a misspelt field',
      config(provider({ matchimages: ['a.io'] })),
      /strict decoding error: unknown field "providers\[0\]\.matchimages"/,
    ],
    [
      'tokens in an older file',
      { ...config(provider({ tokenAttributes: attributes })), apiVersion: 'kubelet.config.k8s.io/v1beta1' },
      /unknown field "providers\[0\]\.tokenAttributes"/,
    ],
    [
      'what is no annotation',
      config(provider({ tokenAttributes: { ...attributes, requiredServiceAccountAnnotationKeys: ['a b'] } })),
      /requiredServiceAccountAnnotationKeys: Invalid value: "a b": name part must consist of/,
    ],
    [
      'an annotation asked for twice',
      config(provider({ tokenAttributes: { ...attributes, optionalServiceAccountAnnotationKeys: ['a/b', 'a/b'] } })),
      /optionalServiceAccountAnnotationKeys: Duplicate value: "a\/b"/,
    ],
  ];
  for (const [name, document, expected] of bad)
    it(`refuses ${name}`, () => assert.match(parseProviderConfig(document).problems.join('; '), expected));

  it('is told apart by a hash that other kubelets make of the same files, too', async () => {
    const file = join(root, 'hashed.yaml');
    writeFileSync(file, 'abc');
    assert.equal(
      await hashProviderConfigs(file),
      'sha256:c3494ca1a2cf8eeb8a11ded316fb55b83c3bbbedb6313cd50415251e5d09e12f',
    );
  });

  it('merges the files of a folder in order and refuses doubles', async () => {
    const dir = join(root, 'config');
    mkdirSync(dir);
    writeFileSync(join(dir, 'b.yaml'), JSON.stringify(config(provider({ name: 'two' }))));
    writeFileSync(join(dir, 'a.json'), JSON.stringify(config(provider({ name: 'one' }))));
    writeFileSync(join(dir, 'ignored.txt'), 'nonsense');
    assert.deepEqual(
      (await loadProviderConfigs(dir)).map((p) => p.name),
      ['one', 'two'],
    );
    assert.match(await hashProviderConfigs(dir), /^sha256:[0-9a-f]{64}$/);
    const elsewhere = join(root, 'elsewhere');
    mkdirSync(elsewhere);
    writeFileSync(join(root, 'target'), JSON.stringify(config(provider({ name: 'linked' }))));
    symlinkSync(join(root, 'target'), join(elsewhere, 'a.yaml'));
    assert.equal((await loadProviderConfigs(elsewhere))[0]?.name, 'linked');
    writeFileSync(join(dir, 'c.yml'), JSON.stringify(config(provider({ name: 'one' }))));
    await assert.rejects(loadProviderConfigs(dir), { kind: 'invalid', message: /"one" is declared twice/ });
  });
});

/** A plugin that notes each question and answers with `answer`. */
function plugin(answer: object | string, more: object = {}, account?: ServiceAccountIdentity) {
  const dir = mkdtempSync(join(root, 'bin-'));
  const asked = join(dir, 'asked');
  const text = typeof answer === 'string' ? answer : `cat <<'EOF'\n${JSON.stringify(answer)}\nEOF`;
  writeFileSync(join(dir, 'plug'), `#!/bin/sh\ncat >> ${asked}; echo >> ${asked}\n${text}\n`);
  chmodSync(join(dir, 'plug'), 0o755);
  const { providers } = parseProviderConfig(config(provider(more)));
  const credentials = new Credentials(
    { clock: systemClock, log: silentLogger, registry: new Registry(), serviceAccountOf: async () => account },
    { rootDir: dir, workingDir: dir, homeDir: undefined, providers, providerBinDir: dir },
  );
  const find = async (image: string) =>
    (await credentials.forImage(POD, parseImageName(image).repository, [], forever)).map((c) => c.username);
  const questions = (): Record<string, unknown>[] => {
    try {
      return readFileSync(asked, 'utf8')
        .split('\n')
        .filter((l) => l !== '')
        .map((l) => JSON.parse(l) as Record<string, unknown>);
    } catch {
      // Nobody asked yet.
      return [];
    }
  };
  return { dir, credentials, find, questions };
}
const answer = (more: object = {}): object => ({
  kind: 'CredentialProviderResponse',
  apiVersion: V1,
  cacheKeyType: 'Image',
  auth: { '*.reg.io': { username: 'u', password: 'p' } },
  ...more,
});

describe('credential provider plugin', () => {
  it('is asked for matching images only, in its protocol', async () => {
    const t = plugin(answer());
    assert.deepEqual(await t.find('other.io/a:1'), []);
    assert.deepEqual(await t.find('x.reg.io/a:1'), ['u']);
    assert.deepEqual(t.questions(), [{ kind: 'CredentialProviderRequest', apiVersion: V1, image: 'x.reg.io/a' }]);
  });

  it('is asked for the full name of an image, whatever the pod calls it', async () => {
    const t = plugin(answer({ auth: { 'docker.io': { username: 'u', password: 'p' } } }), {
      matchImages: ['docker.io'],
    });
    assert.deepEqual(await t.find('busybox:1'), ['u']);
    assert.equal(t.questions()[0]?.['image'], 'docker.io/library/busybox');
  });

  for (const [type, again, asked] of [
    ['Image', 'x.reg.io/a:1', 1],
    ['Image', 'x.reg.io/a:2', 1],
    ['Image', 'x.reg.io/b:1', 2],
    ['Registry', 'x.reg.io/b:1', 1],
    ['Registry', 'y.reg.io/b:1', 2],
    ['Global', 'y.reg.io/b:1', 1],
  ] as const)
    it(`keeps an answer per ${type}: ${again} asks ${asked} times`, async () => {
      const t = plugin(answer({ cacheKeyType: type }));
      await t.find('x.reg.io/a:1');
      assert.deepEqual(await t.find(again), ['u']);
      assert.equal(t.questions().length, asked);
    });

  it('does not keep what must not be kept', async () => {
    const t = plugin(answer({ cacheDuration: '0s' }));
    await t.find('x.reg.io/a:1');
    await t.find('x.reg.io/a:1');
    assert.equal(t.questions().length, 2);
  });

  it('runs once for several at the same time', async () => {
    const t = plugin(answer());
    await Promise.all([1, 2, 3].map(() => t.find('x.reg.io/a:1')));
    assert.equal(t.questions().length, 1);
  });

  it('ends when nobody waits for its answer any more', async () => {
    const t = plugin('echo $$ > "$0.pid"; exec sleep 1000');
    const ask = (signal: AbortSignal): Promise<unknown> => t.credentials.forImage(POD, 'x.reg.io/a', [], signal);
    const [one, two] = [new AbortController(), new AbortController()];
    const asked = [one, two].map(({ signal }) => assert.rejects(ask(signal)));
    const pid = await until('it was asked', () => Number(readFileSync(join(t.dir, 'plug.pid'), 'utf8')) || undefined);
    one.abort();
    await asked[0];
    assert.ok(existsSync(`/proc/${pid}`), 'another one waits');
    two.abort();
    await asked[1];
    await until('it is gone', () => !existsSync(`/proc/${pid}`));
  });

  for (const [name, bad] of [
    ['fails', 'exit 3'],
    ['speaks nonsense', 'echo hunter2'],
    ['speaks another version', answer({ apiVersion: 'credentialprovider.kubelet.k8s.io/v1beta1' })],
    ['has no cache type', answer({ cacheKeyType: 'Foo' })],
    ['has the cache type of a stranger', answer({ cacheKeyType: 'constructor' })],
    ['says null', 'echo null'],
    ['says a list', 'echo []'],
    ['gives no logins', answer({ auth: 'x' })],
  ] as const)
    it(`offers nothing when it ${name}`, async () => {
      const t = plugin(bad);
      assert.deepEqual(await t.find('x.reg.io/a:1'), []);
    });

  it('gets the service account’s token and the annotations it asked for', async () => {
    const tokenAttributes = {
      serviceAccountTokenAudience: 'aud',
      cacheType: 'Token',
      requireServiceAccount: true,
      requiredServiceAccountAnnotationKeys: ['role'],
      optionalServiceAccountAnnotationKeys: ['maybe'],
    };
    const account = {
      uid: 'sa-uid',
      namespace: 'n',
      name: 'sa',
      annotations: { role: 'reader', secret: 'no' },
      token: async (audience: string) => `token-for-${audience}`,
    };
    const t = plugin(answer(), { tokenAttributes }, account);
    const [found] = await t.credentials.forImage(POD, 'x.reg.io/a', [], forever);
    assert.deepEqual(found?.source, { from: 'serviceAccount', uid: 'sa-uid', namespace: 'n', name: 'sa' });
    const [question] = t.questions();
    assert.equal(question?.['serviceAccountToken'], 'token-for-aud');
    assert.deepEqual(question['serviceAccountAnnotations'], { role: 'reader' });
    const without = plugin(answer(), { tokenAttributes }, { ...account, annotations: {} });
    assert.deepEqual(await without.find('x.reg.io/a:1'), []);
    assert.deepEqual(without.questions(), []);
  });

  it('cannot make a login that is kept for an account of the token of one pod', async () => {
    const account = {
      uid: 'sa-uid',
      namespace: 'n',
      name: 'sa',
      annotations: {},
      token: async (): Promise<string> => 'the-token',
    };
    const echo = answer({ auth: { '*.reg.io': { username: 'u', password: 'the-token' } } });
    for (const cacheType of ['ServiceAccount', 'Token']) {
      const tokenAttributes = { serviceAccountTokenAudience: 'aud', cacheType, requireServiceAccount: true };
      const t = plugin(echo, { tokenAttributes }, account);
      assert.deepEqual(await t.find('x.reg.io/a:1'), cacheType === 'Token' ? ['u'] : [], cacheType);
    }
  });

  it('must be there when the kubelet starts', async () => {
    const t = plugin(answer());
    await t.credentials.check();
    rmSync(join(t.dir, 'plug'));
    await assert.rejects(t.credentials.check(), { message: `plugin binary executable ${t.dir}/plug did not exist` });
  });

  it('comes after the node’s docker files', async () => {
    const t = plugin(answer());
    writeFileSync(
      join(t.dir, 'config.json'),
      JSON.stringify({ auths: { 'x.reg.io': { username: 'file', password: 'p' } } }),
    );
    assert.deepEqual(await t.find('x.reg.io/a:1'), ['file', 'u']);
  });
});
