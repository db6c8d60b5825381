// The packages: the same bytes whenever they are built, complete, and able to start.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, readFileSync, readdirSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const skip = existsSync('/usr/bin/dpkg-deb') ? false : 'dpkg-deb is not installed';

describe('packages', { skip }, () => {
  let dir = '';
  let unpacked = '';
  const build = (out: string, env: NodeJS.ProcessEnv): void => {
    // Node is a hundred times the rest; this stands in its place and starts it.
    const node = join(dir, 'node');
    writeFileSync(node, `#!/bin/sh\nexec ${process.execPath} "$@"\n`);
    const args = [join(ROOT, 'scripts', 'package.ts'), '--out', out, '--arch', 'x64', '--node', node];
    execFileSync(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, ...env } });
  };
  const at = (path: string): string => join(unpacked, path);
  const text = (path: string): string => readFileSync(at(path), 'utf8');

  before(() => {
    dir = temporaryFolder('kts-package-');
    unpacked = join(dir, 'unpacked');
    build(join(dir, 'one'), { TZ: 'UTC', LANG: 'C' });
    execFileSync('dpkg-deb', ['-x', join(dir, 'one', debName()), unpacked]);
  });
  const debName = (): string => readdirSync(join(dir, 'one')).find((name) => name.endsWith('_amd64.deb')) ?? '';

  it('are byte for byte the same when built again elsewhere and later', () => {
    build(join(dir, 'two'), { TZ: 'Asia/Tokyo', LANG: 'de_DE.UTF-8', HOME: dir });
    const sums = (folder: string): string[] =>
      readdirSync(join(dir, folder))
        .sort()
        .map(
          (name) =>
            `${name} ${createHash('sha256')
              .update(readFileSync(join(dir, folder, name)))
              .digest('hex')}`,
        );
    assert.equal(sums('one').length, 3);
    assert.deepEqual(sums('two'), sums('one'));
  });

  it('carry what an administrator looks for', () => {
    for (const path of [
      'usr/lib/kubelet-ts/dist/kubelet.mjs',
      'usr/lib/kubelet-ts/dist/kubelet.mjs.map',
      'usr/lib/kubelet-ts/dist/held-device-child.mjs',
      'usr/lib/kubelet-ts/dist/subpath-child.mjs',
      'usr/lib/kubelet-ts/dist/page-app.js',
      'usr/lib/kubelet-ts/dist/page-boot.js',
      'usr/lib/kubelet-ts/dist/page-index.html',
      'usr/share/doc/kubelet-ts/copyright',
      'usr/share/doc/kubelet-ts/changelog.gz',
      'usr/share/doc/kubelet-ts/node-licenses.gz',
      'usr/share/doc/kubelet-ts/examples/config.yaml',
      'usr/share/bash-completion/completions/kubelet-ts',
      'usr/share/zsh/vendor-completions/_kubelet-ts',
      'usr/share/fish/vendor_completions.d/kubelet-ts.fish',
    ])
      assert.ok(statSync(at(path)).size > 100, path);
    const map = JSON.parse(text('usr/lib/kubelet-ts/dist/kubelet.mjs.map')) as { readonly sources: readonly string[] };
    assert.ok(map.sources.includes('../src/main.ts'), 'a failure names its place in the source');
    assert.equal(readlinkSync(at('usr/bin/kubelet-ts')), '../lib/kubelet-ts/bin/kubelet');
    assert.equal(lstatSync(at('usr/lib/kubelet-ts/bin/node')).mode & 0o7777, 0o755);
    const man = gunzipSync(readFileSync(at('usr/share/man/man8/kubelet-ts.8.gz'))).toString();
    assert.match(man, /^\.B \\-\\-container\\-runtime\\-endpoint/m);
    execFileSync('bash', ['-n', at('usr/share/bash-completion/completions/kubelet-ts')]);
  });

  it('have checksums that are right and a size', () => {
    const deb = join(dir, 'one', debName());
    const sums = execFileSync('dpkg-deb', ['--ctrl-tarfile', deb], { maxBuffer: 1e8 });
    const md5 = execFileSync('tar', ['-xO', './md5sums'], { input: sums });
    execFileSync('md5sum', ['--check', '--strict', '--quiet'], { cwd: unpacked, input: md5 });
    assert.match(execFileSync('dpkg-deb', ['--info', deb], { encoding: 'utf8' }), /Installed-Size: \d{3,}/);
  });

  it('start from any place and say what they are', () => {
    for (const program of [at('usr/lib/kubelet-ts/bin/kubelet'), at('usr/bin/kubelet-ts')]) {
      const short = spawnSync(program, ['--version'], { encoding: 'utf8', cwd: '/' });
      assert.deepEqual([short.status, short.stderr], [0, '']);
      assert.match(short.stdout, /^Kubernetes v1\.\d+\.\d+\+kubelet-ts\.[\w.]+\n$/);
      const commit = spawnSync('git', ['-C', ROOT, 'rev-parse', 'HEAD'], { encoding: 'utf8' }).stdout.trim();
      assert.ok(spawnSync(program, ['--version=raw'], { encoding: 'utf8' }).stdout.includes(`GitCommit:"${commit}"`));
    }
  });

  it('take the variables of kubeadm in the drop-in', () => {
    const conf = text('usr/lib/systemd/system/kubelet.service.d/20-kubelet-ts.conf');
    assert.match(conf, /^ExecStart=\nExecStart=\/usr\/lib\/kubelet-ts\/bin\/kubelet /m);
    for (const name of ['KUBECONFIG', 'CONFIG', 'KUBEADM', 'EXTRA']) assert.ok(conf.includes(`$KUBELET_${name}_ARGS`));
  });

  it('come with a bill of materials', () => {
    const bill = JSON.parse(text('usr/share/doc/kubelet-ts/sbom.spdx.json')) as {
      spdxVersion: string;
      packages: { SPDXID: string; name: string; versionInfo: string; checksums?: { checksumValue: string }[] }[];
      relationships: { spdxElementId: string; relatedSpdxElement: string }[];
    };
    assert.equal(bill.spdxVersion, 'SPDX-2.3');
    const named = new Map(bill.packages.map((one) => [one.name, one]));
    assert.equal(named.get('node')?.versionInfo, process.versions.node);
    assert.equal(named.get('node-openssl')?.versionInfo, process.versions.openssl);
    const node = createHash('sha256')
      .update(readFileSync(at('usr/lib/kubelet-ts/bin/node')))
      .digest('hex');
    assert.equal(named.get('node')?.checksums?.[0]?.checksumValue, node);
    const ids = new Set(['SPDXRef-DOCUMENT', ...bill.packages.map((one) => one.SPDXID)]);
    assert.equal(ids.size, bill.packages.length + 1, 'ids are unique');
    for (const { spdxElementId, relatedSpdxElement } of bill.relationships)
      assert.ok(ids.has(spdxElementId) && ids.has(relatedSpdxElement));
  });
});
