// Container images made here, without a registry or docker: a busybox image in as many variants as tests ask for, and
// the sandbox ("pause") image. The archive is an OCI layout that `ctr images import` understands.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { tar, type TarEntry } from '../../lib/tar.ts';

export type ImageVariant = {
  readonly ref: string;
  /** `config.User`: a number, a name, or `user:group`. */
  readonly user?: string;
  readonly entrypoint?: readonly string[];
  readonly cmd?: readonly string[];
  readonly env?: readonly string[];
  readonly workingDir?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly stopSignal?: string;
  /** Adds a file of this many (incompressible) bytes, so that images differ in size. */
  readonly extraBytes?: number;
  /** More files, by absolute path. */
  readonly files?: Readonly<Record<string, string>>;
};

const BUSYBOX = '/bin/busybox';
const PASSWD =
  'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\napp:x:1000:1000:app:/home/app:/bin/sh\n';
const GROUP = 'root:x:0:\nnogroup:x:65534:\napp:x:1000:\nextra:x:2000:app\n';

let busyboxTree: TarEntry[] | undefined;

function busyboxEntries(): readonly TarEntry[] {
  if (busyboxTree !== undefined) return busyboxTree;
  const applets = execFileSync(BUSYBOX, ['--list'], { encoding: 'utf8' })
    .split('\n')
    .filter((a) => a !== '' && a !== 'busybox');
  const dirs = ['bin', 'etc', 'root', 'home', 'home/app', 'var', 'usr', 'usr/bin', 'proc', 'sys', 'dev'];
  busyboxTree = [
    ...dirs.map((path): TarEntry => ({ path, type: 'dir', mode: 0o755 })),
    { path: 'tmp', type: 'dir', mode: 0o1777 },
    { path: 'bin/busybox', type: 'file', mode: 0o755, data: readFileSync(BUSYBOX) },
    ...libraryEntries(BUSYBOX),
    ...applets.map((name): TarEntry => ({ path: `bin/${name}`, type: 'link', target: 'busybox' })),
    { path: 'usr/bin/env', type: 'link', target: '../../bin/busybox' },
    { path: 'etc/passwd', type: 'file', mode: 0o644, data: Buffer.from(PASSWD) },
    { path: 'etc/group', type: 'file', mode: 0o644, data: Buffer.from(GROUP) },
  ];
  return busyboxTree;
}

/** The libraries a program needs, where it looks for them; none for a static one. */
export function libraryEntries(program: string): TarEntry[] {
  const reported = spawnSync('ldd', [program], { encoding: 'utf8' });
  const paths =
    reported.status === 0 ? [...reported.stdout.matchAll(/^\s+(?:\S+ => )?(\/\S+) \(0x/gm)].map((m) => m[1] ?? '') : [];
  const folders = new Set<string>();
  for (const path of paths) for (let at = dirname(path); at !== '/'; at = dirname(at)) folders.add(at.slice(1));
  return [
    ...[...folders].sort().map((path): TarEntry => ({ path, type: 'dir', mode: 0o755 })),
    ...paths.map((path): TarEntry => ({ path: path.slice(1), type: 'file', mode: 0o755, data: readFileSync(path) })),
  ];
}

export type Blob = { readonly data: Buffer; readonly mediaType: string; readonly digest: string };
export type BuiltImage = { readonly blobs: readonly Blob[]; readonly manifest: Buffer };

/** Busybox in this variant, as blobs and manifest: what a registry serves. */
export function busyboxImage(variant: ImageVariant): BuiltImage {
  const extra: TarEntry[] = Object.entries(variant.files ?? {}).map(([path, text]) => ({
    path: path.replace(/^\//, ''),
    type: 'file',
    mode: 0o644,
    data: Buffer.from(text),
  }));
  if (variant.extraBytes !== undefined)
    extra.push({ path: 'extra', type: 'file', mode: 0o644, data: noise(variant.extraBytes, variant.ref) });
  return build(variant, [tar(busyboxEntries()), ...(extra.length > 0 ? [tar(extra)] : [])]);
}

/** An OCI archive holding busybox under `variant.ref`. */
export const busyboxArchive = (variant: ImageVariant): Buffer => archive(variant.ref, busyboxImage(variant));

/** The image whose only process holds a sandbox's namespaces open. */
export function pauseImage(ref: string): BuiltImage {
  if (process.arch !== 'x64') return busyboxImage({ ref, entrypoint: ['/bin/sleep', '2147483647'] });
  const layer = tar([{ path: 'pause', type: 'file', mode: 0o755, data: pauseBinary() }]);
  return build({ ref, entrypoint: ['/pause'] }, [layer]);
}

export const pauseArchive = (ref: string): Buffer => archive(ref, pauseImage(ref));

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const sha256 = (data: Buffer): string => `sha256:${createHash('sha256').update(data).digest('hex')}`;
const descriptor = ({ data, mediaType, digest }: Blob) => ({ mediaType, digest, size: data.length });

function build(variant: ImageVariant, layerTars: readonly Buffer[]): BuiltImage {
  const blob = (mediaType: string, data: Buffer): Blob => ({ data, mediaType, digest: sha256(data) });
  const layers = layerTars.map((l) => blob('application/vnd.oci.image.layer.v1.tar', l));
  const config = blob(
    'application/vnd.oci.image.config.v1+json',
    json({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: {
        User: variant.user,
        Env: variant.env ?? ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
        Entrypoint: variant.entrypoint,
        Cmd: variant.cmd ?? (variant.entrypoint === undefined ? ['sh'] : undefined),
        WorkingDir: variant.workingDir,
        Labels: variant.labels ?? { variant: variant.ref },
        Volumes: variant.volumes && Object.fromEntries(variant.volumes.map((v) => [v, {}])),
        StopSignal: variant.stopSignal,
      },
      rootfs: { type: 'layers', diff_ids: layers.map((l) => l.digest) },
    }),
  );
  const manifest = json({
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: descriptor(config),
    layers: layers.map(descriptor),
  });
  return { blobs: [config, ...layers], manifest };
}

function archive(ref: string, { blobs, manifest }: BuiltImage): Buffer {
  const main: Blob = { data: manifest, mediaType: MANIFEST, digest: sha256(manifest) };
  const index = {
    schemaVersion: 2,
    manifests: [{ ...descriptor(main), annotations: { 'io.containerd.image.name': ref } }],
  };
  return tar([
    { path: 'oci-layout', type: 'file', mode: 0o644, data: json({ imageLayoutVersion: '1.0.0' }) },
    { path: 'index.json', type: 'file', mode: 0o644, data: json(index) },
    ...[...blobs, main].map((b): TarEntry => ({
      path: `blobs/${b.digest.replace(':', '/')}`,
      type: 'file',
      mode: 0o644,
      data: b.data,
    })),
  ]);
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

/** Reproducible bytes that do not compress. */
function noise(size: number, seed: string): Buffer {
  const out = Buffer.allocUnsafe(size);
  let block = createHash('sha256').update(seed).digest();
  for (let at = 0; at < size; at += block.length) {
    block.copy(out, at);
    block = createHash('sha256').update(block).digest();
  }
  return out;
}

/** A static x86-64 executable: ignore SIGCHLD (so that orphans are reaped by the kernel), then pause for ever. */
function pauseBinary(): Buffer {
  const code = Buffer.from(
    'b80d000000' + // mov eax, SYS_rt_sigaction
      'bf11000000' + // mov edi, SIGCHLD
      '488d3513000000' + // lea rsi, [action]
      '31d2' + // xor edx, edx
      '41ba08000000' + // mov r10d, 8
      '0f05' + // syscall
      'b822000000' + // again: mov eax, SYS_pause
      '0f05' + // syscall
      'ebf7' + // jmp again
      '0100000000000000'.padEnd(64, '0'), // action: SIG_IGN
    'hex',
  );
  const base = 0x400000n;
  const start = 64 + 56;
  const out = Buffer.alloc(start + code.length);
  out.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1], 0);
  out.writeUInt16LE(2, 16);
  out.writeUInt16LE(62, 18);
  out.writeUInt32LE(1, 20);
  out.writeBigUInt64LE(base + BigInt(start), 24);
  out.writeBigUInt64LE(64n, 32);
  out.writeUInt16LE(64, 52);
  out.writeUInt16LE(56, 54);
  out.writeUInt16LE(1, 56);
  out.writeUInt32LE(1, 64);
  out.writeUInt32LE(5, 68);
  out.writeBigUInt64LE(base, 80);
  out.writeBigUInt64LE(base, 88);
  out.writeBigUInt64LE(BigInt(out.length), 96);
  out.writeBigUInt64LE(BigInt(out.length), 104);
  out.writeBigUInt64LE(0x1000n, 112);
  code.copy(out, start);
  return out;
}
