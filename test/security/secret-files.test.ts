// Files, answers and plugins that hold credentials, broken in every way a generator finds: what is said of them, as a log line
// with its cause, quotes no part of a credential.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { loadConfigFile } from '../../src/config/load.ts';
import { parseDockerConfig } from '../../src/images/docker-config.ts';
import { loadProviderConfigs } from '../../src/images/provider-config.ts';
import { runExecPlugin } from '../../src/kube/exec-credential.ts';
import { resolveKubeconfig, type ClusterAccess } from '../../src/kube/kubeconfig.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { formatJson, formatText } from '../../src/lib/logger.ts';
import { randomRuns } from '../harness/random-runs.ts';

const { signal } = new AbortController();
const dir = mkdtempSync(join(tmpdir(), 'secret-files-'));
after(() => rmSync(dir, { recursive: true }));

const SECRET = 'Zq8vK3xT1mLw9RbY5nHd2PfJ7sGc4AuEoXi6QtB0';
const PART = 6;
const PARTS = Array.from({ length: SECRET.length - PART + 1 }, (_, i) => SECRET.slice(i, i + PART));

/** Asserts on the log lines of a failure. */
function assertQuotesNothing(err: unknown, input: string): void {
  const line = { severity: 'E', level: 0, atMs: 0, message: 'failed', fields: { err } } as const;
  for (const text of [formatText(line, 1), formatJson(line), String(err)]) {
    const found = PARTS.find((part) => text.includes(part));
    assert.equal(found, undefined, `${text}\n--- of\n${input}`);
  }
}

const KUBECONFIG = `apiVersion: v1
kind: Config
current-context: c
contexts:
- name: c
  context: {cluster: k, user: u}
clusters:
- name: k
  cluster:
    server: https://h:6443
    proxy-url: http://user:${SECRET}@proxy:3128
users:
- name: u
  user:
    token: ${SECRET}
    password: "${SECRET}"
    client-key-data: ${SECRET}
    exec:
      apiVersion: client.authentication.k8s.io/v1
      interactiveMode: Never
      command: plugin
      args: [--client-secret, ${SECRET}]
      env:
      - {name: TOKEN, value: ${SECRET}}
`;
const PROVIDERS = `kind: CredentialProviderConfig
apiVersion: kubelet.config.k8s.io/v1
providers:
- name: ecr
  matchImages: ["*.example.com"]
  defaultCacheDuration: 1h
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: ["--secret=${SECRET}"]
  env:
  - name: PASSWORD
    value: ${SECRET}
`;
const CONFIGURATION = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodURL: http://user:${SECRET}@h/?token=${SECRET}
staticPodURLHeader:
  X-Token: [${SECRET}, "${SECRET}"]
`;
const DOCKER = JSON.stringify({ auths: { 'r.io': { username: 'u', password: SECRET, auth: SECRET } } });
const ANSWER = {
  kind: 'ExecCredential',
  apiVersion: 'client.authentication.k8s.io/v1',
  status: { token: SECRET, clientKeyData: SECRET, clientCertificateData: SECRET },
};

function written(text: string): string {
  const path = join(dir, 'file.yaml');
  writeFileSync(path, text);
  return path;
}
const READERS: readonly (readonly [string, string, (text: string) => unknown])[] = [
  ['kubeconfig', KUBECONFIG, (text) => resolveKubeconfig(text, '/etc/kubernetes/kubelet.conf')],
  ['configuration of credential providers', PROVIDERS, (text) => loadProviderConfigs(written(text))],
  ['configuration of the kubelet', CONFIGURATION, (text) => loadConfigFile(written(text))],
  ['registry credentials', DOCKER, (text) => parseDockerConfig(text, 'json')],
];

const SPECIAL = [
  '"',
  "'",
  ': ',
  '\n',
  '\n  ',
  '\t',
  '{',
  '}',
  '[',
  ']',
  ',',
  '&',
  '*',
  '!',
  '|',
  '>',
  '%',
  '@',
  '`',
  '# ',
  '- ',
  '\\',
  '\0',
  '<<: ',
];
/** Cuts the text off, leaves characters out, or puts some in, anywhere or before a credential. */
const damage = fc.record({
  where: fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), fc.constant(SECRET)),
  drop: fc.oneof(fc.nat(3), fc.constant(Infinity)),
  insert: fc.constantFrom('', ...SPECIAL),
});
type Damage = { where: number | string; drop: number; insert: string };
function damaged(text: string, { where, drop, insert }: Damage): string {
  const at = typeof where === 'string' ? Math.max(0, text.indexOf(where)) : Math.floor(where * text.length);
  return text.slice(0, at) + insert + text.slice(at + (typeof where === 'string' ? 0 : drop));
}

describe('credentials are not quoted', () => {
  for (const [name, whole, read] of READERS)
    it(`by a broken ${name}`, async () => {
      let failures = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 2 }), async (all) => {
          const text = all.reduce(damaged, whole);
          try {
            await read(text);
          } catch (err) {
            failures++;
            assertQuotesNothing(err, text);
          }
        }),
        { numRuns: randomRuns(1000) },
      );
      assert.ok(failures > randomRuns(1000) / 10, `${failures} were refused`);
    });

  it('by values of the wrong kind', async () => {
    for (const [name, text, read] of [
      ['a header that is no list', CONFIGURATION.replace(/\[.*\]/, SECRET), READERS[2]?.[2]],
      ['a header that is an alias', CONFIGURATION.replace(/\[.*\]/, `[*${SECRET}]`), READERS[2]?.[2]],
      ['a proxy of another kind', KUBECONFIG.replace('http://user', 'ftp://user'), READERS[0]?.[2]],
      ['an alias', KUBECONFIG.replace(`token: ${SECRET}`, `token: *${SECRET}`), READERS[0]?.[2]],
    ] as const)
      await assert.rejects(
        async () => read?.(text),
        (err) => {
          assertQuotesNothing(err, text);
          return true;
        },
        name,
      );
  });

  const command = join(dir, 'plugin');
  const plugin = (script: string): Promise<unknown> => {
    writeFileSync(command, `#!/bin/sh\n${script}\n`);
    chmodSync(command, 0o755);
    const { apiVersion } = ANSWER;
    const [args, env] = [[`--client-secret=${SECRET}`], [{ name: 'TOKEN', value: SECRET }]];
    const exec = { apiVersion, command, args, env, installHint: '', provideClusterInfo: false };
    return runExecPlugin({ clock: systemClock }, exec, { server: 'https://h' } as ClusterAccess, signal);
  };

  it('by a plugin that fails', async () => {
    for (const script of [
      `echo "$1 $TOKEN" >&2; exit 3`,
      `echo "$TOKEN"; exit 1`,
      'kill -9 $$',
      'head -c 3000000 /dev/zero | tr "\\0" "x"; echo "$TOKEN"',
    ])
      await assert.rejects(plugin(script), (err) => {
        assertQuotesNothing(err, script);
        return true;
      });
  });

  it('by the answer of a plugin', async () => {
    const whole = JSON.stringify(ANSWER);
    await fc.assert(
      fc.asyncProperty(damage, async (one) => {
        const text = damaged(whole, one).replaceAll('\0', '').replaceAll("'", '');
        await plugin(`printf '%s' '${text}'`).catch((err: unknown) => assertQuotesNothing(err, text));
      }),
      { numRuns: randomRuns(40) },
    );
  });
});
