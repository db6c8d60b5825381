import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { CertificateStore } from './certificate-store.ts';
import { newSelfSigned } from './self-signed-serving.ts';

it('a certificate is saved when the directory with its link is synced', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'certificates-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const seen: string[] = [];
  const store = new CertificateStore(dir, 'kubelet-client', undefined, async (path) => {
    seen.push(path, readlinkSync(store.currentPath));
  });
  const now = Date.UTC(2026, 10, 20);
  const { cert, key } = await newSelfSigned('node', now);
  await store.save(cert, key, now);
  assert.deepEqual(seen, [dir, join(dir, 'kubelet-client-2026-11-20-00-00-00.pem')]);
});

it('of the certificates that were replaced the last one stays, and files of other names', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'certificates-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const others = ['kubelet-client-2025-01-01-00-00-00.pem.bak', 'kubelet-client.crt', 'kubelet-server-current.pem'];
  for (const name of [...others, 'kubelet-server-2025-01-01-00-00-00.pem']) writeFileSync(join(dir, name), 'x');
  const start = Date.UTC(2026, 10, 20);
  const { cert, key } = await newSelfSigned('node', start);
  const dated = (): string[] => readdirSync(dir).filter((name) => /^kubelet-client-2.*pem$/.test(name));
  const store = new CertificateStore(dir, 'kubelet-client');
  const saveAt = (minutes: number): Promise<unknown> => store.save(cert, key, start + minutes * 60_000);
  for (let i = 0; i < 4; i++) await saveAt(i);
  assert.deepEqual(dated(), ['kubelet-client-2026-11-20-00-02-00.pem', 'kubelet-client-2026-11-20-00-03-00.pem']);
  await saveAt(1);
  assert.deepEqual(
    dated(),
    ['kubelet-client-2026-11-20-00-01-00.pem', 'kubelet-client-2026-11-20-00-03-00.pem'],
    'the one before, also after the clock was set back',
  );
  rmSync(store.currentPath);
  await saveAt(7);
  assert.deepEqual(dated(), ['kubelet-client-2026-11-20-00-03-00.pem', 'kubelet-client-2026-11-20-00-07-00.pem']);
  const left = readdirSync(dir);
  for (const name of [...others, 'kubelet-server-2025-01-01-00-00-00.pem']) assert.ok(left.includes(name), name);
});
