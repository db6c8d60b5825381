// `npm run package`: Debian packages and a tarball for x64 and arm64 in dist/packages, byte for byte the same for the same commit.
//   --out DIR          elsewhere       --arch x64            one architecture
//   --package-version  another one     --node FILE           another program in Node's place (for tests)
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { gzip, tar, type Entry } from './package/archive.ts';
import { debianPackage, file, PACKAGING, policyFiles } from './package/debian.ts';
import { bashCompletion, fishCompletion, manPage, zshCompletion } from './package/documents.ts';
import { pinnedNode, type Arch } from './package/pinned-node.ts';
import { sbom } from './package/sbom.ts';

const ROOT = join(import.meta.dirname, '..');
const DEBIAN_ARCH: Readonly<Record<Arch, string>> = { x64: 'amd64', arm64: 'arm64' };

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    arch: { type: 'string' },
    node: { type: 'string' },
    'package-version': { type: 'string' },
  },
});
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
const version = values['package-version'] ?? manifest.version;
const out = resolve(values.out ?? join(ROOT, 'dist', 'packages'));
const git = (...args: readonly string[]): string =>
  spawnSync('git', ['-C', ROOT, ...args], { encoding: 'utf8' }).stdout?.trim() ?? '';
const commit = git('rev-parse', 'HEAD');
/** Every time in the packages: what SOURCE_DATE_EPOCH says, or the commit's. */
const epochSeconds = Number(process.env['SOURCE_DATE_EPOCH'] ?? (git('log', '-1', '--format=%ct') || 0));
const changes = sectionOf(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), manifest.version);

/** The list below `## version`. */
function sectionOf(changelog: string, wanted: string): string {
  const start = changelog.indexOf(`## ${wanted}`);
  if (start < 0) throw new Error(`CHANGELOG.md has no section ${wanted}`);
  const end = changelog.indexOf('\n## ', start + 1);
  return changelog.slice(start, end < 0 ? undefined : end);
}

/** The bundle, built into a folder of its own. */
function bundle(): Entry[] {
  const work = mkdtempSync(join(tmpdir(), 'kubelet-ts-package-'));
  try {
    const build = [join(ROOT, 'scripts', 'build.ts'), '--out', work, '--no-executable', '--package-version', version];
    execFileSync(process.execPath, build, { stdio: ['ignore', 'ignore', 'inherit'] });
    return readdirSync(work).map((name) => ({
      path: `usr/lib/kubelet-ts/dist/${name}`,
      mode: 0o644,
      data: readFileSync(join(work, name)),
    }));
  } finally {
    rmSync(work, { recursive: true });
  }
}

const packaging = (name: string): string => readFileSync(join(PACKAGING, name), 'utf8');

function programTree(arch: Arch, scripts: readonly Entry[]): Entry[] {
  const nodeFolder = pinnedNode(arch);
  const node = readFileSync(values.node ?? join(nodeFolder, 'bin', 'node'));
  const date = new Date(epochSeconds * 1000).toISOString().slice(0, 10);
  const { node: nodeVersion, ...nodeParts } = process.versions as Record<string, string>;
  const yaml = JSON.parse(readFileSync(join(ROOT, 'node_modules', 'yaml', 'package.json'), 'utf8')) as {
    version: string;
  };
  const bill = sbom({
    version,
    arch,
    commit,
    epochSeconds,
    nodeVersion: nodeVersion ?? '',
    nodeParts,
    nodeSha256: createHash('sha256').update(node).digest('hex'),
    yamlVersion: yaml.version,
  });
  const doc = 'usr/share/doc/kubelet-ts';
  return [
    ...scripts,
    { path: 'usr/lib/kubelet-ts/bin/kubelet', mode: 0o755, data: readFileSync(join(ROOT, 'bin', 'kubelet')) },
    { path: 'usr/lib/kubelet-ts/bin/node', mode: 0o755, data: node },
    { path: 'usr/bin/kubelet-ts', link: '../lib/kubelet-ts/bin/kubelet' },
    { path: 'var/cache/kubelet-ts', directory: true },
    file('usr/lib/systemd/system/kubelet.service.d/20-kubelet-ts.conf', packaging('20-kubelet-ts.conf')),
    file('usr/share/bash-completion/completions/kubelet-ts', bashCompletion()),
    file('usr/share/zsh/vendor-completions/_kubelet-ts', zshCompletion()),
    file('usr/share/fish/vendor_completions.d/kubelet-ts.fish', fishCompletion()),
    { ...file('usr/share/man/man8/kubelet-ts.8.gz', ''), data: gzip(Buffer.from(manPage(version, date))) },
    file(`${doc}/sbom.spdx.json`, bill),
    file(`${doc}/examples/config.yaml`, packaging('config.yaml')),
    { ...file(`${doc}/node-licenses.gz`, ''), data: gzip(readFileSync(join(nodeFolder, 'LICENSE'))) },
    { ...file(`${doc}/yaml-license.gz`, ''), data: gzip(readFileSync(join(ROOT, 'node_modules', 'yaml', 'LICENSE'))) },
    ...policyFiles('kubelet-ts', version, changes, epochSeconds),
  ];
}

function write(name: string, data: Buffer): void {
  const path = join(out, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, data);
  console.log(`${createHash('sha256').update(data).digest('hex')}  ${path}`);
}

function packageFor(arch: Arch, scripts: readonly Entry[]): void {
  const entries = programTree(arch, scripts);
  const debian = DEBIAN_ARCH[arch];
  write(
    `kubelet-ts_${version}_${debian}.deb`,
    debianPackage({
      name: 'kubelet-ts',
      version,
      architecture: debian,
      entries,
      epochSeconds,
      control: {
        Depends: 'libc6 (>= 2.28), libgcc-s1, libstdc++6, libatomic1',
        Recommends: 'containerd | cri-o, iptables | nftables',
        Suggests: 'kubeadm, kubelet | kubelet-ts-standalone',
      },
      description: `Kubernetes node agent in TypeScript\n kubelet-ts takes the place of the Go kubelet: same flags, files and\n directories, so that a node changes hands while its pods run. The service\n kubelet.service runs it once this package is installed and it is restarted.`,
    }),
  );
  const folder = `kubelet-ts-${version}-linux-${arch}`;
  write(`${folder}.tar.gz`, gzip(tar(entries, epochSeconds, `${folder}/`), 6));
}

/** For machines without the Go kubelet's package: its command and its unit. */
function standalone(): void {
  const entries: Entry[] = [
    { path: 'usr/bin/kubelet', link: '../lib/kubelet-ts/bin/kubelet' },
    file('usr/lib/systemd/system/kubelet.service', packaging('kubelet.service')),
    { path: 'usr/share/man/man8/kubelet.8.gz', link: 'kubelet-ts.8.gz' },
    ...policyFiles('kubelet-ts-standalone', version, changes, epochSeconds),
  ];
  write(
    `kubelet-ts-standalone_${version}_all.deb`,
    debianPackage({
      name: 'kubelet-ts-standalone',
      version,
      architecture: 'all',
      entries,
      epochSeconds,
      control: {
        Depends: `kubelet-ts (= ${version})`,
        Provides: 'kubelet (= 1.36.0)',
        Conflicts: 'kubelet, kubernetes-node',
        Replaces: 'kubelet',
      },
      description: `kubelet-ts as the only kubelet of a machine\n The command kubelet and the unit kubelet.service, for machines on which the\n package of the Go kubelet is not installed.`,
    }),
  );
}

const scripts = bundle();
for (const arch of ['x64', 'arm64'] as const)
  if (values.arch === undefined || values.arch === arch) packageFor(arch, scripts);
standalone();
