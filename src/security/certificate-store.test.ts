import assert from 'node:assert/strict';
import { mkdtempSync, readlinkSync, rmSync } from 'node:fs';
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
