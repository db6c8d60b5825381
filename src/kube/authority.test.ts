import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { LeveledLogger, silentLogger, type Line } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { newKeyPair } from '../lib/x509/keys.ts';
import { selfSignedAuthority } from '../lib/x509/certificate.ts';
import { Authority } from './authority.ts';

const dir = mkdtempSync(join(tmpdir(), 'authority-'));
after(() => rmSync(dir, { recursive: true }));

const keys = newKeyPair();
const issued = (commonName: string): string =>
  selfSignedAuthority({ commonName }, keys, { notBeforeMs: 0, notAfterMs: 1000 });

it('is what its file says now; a file of no use leaves the last one, and is told of once', async () => {
  const caFile = join(dir, 'ca.crt');
  const [first, second] = [issued('first'), issued('second')];
  const lines: Line[] = [];
  const log = new LeveledLogger(new ManualClock(), { write: (line) => void lines.push(line) }, () => 4);
  const authority = new Authority({ log }, { ca: first, caFile });
  for (const [content, wanted] of [
    [undefined, first],
    [first, first],
    [first + second, first + second],
    ['', first + second],
    ['nonsense', first + second],
    ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', first + second],
    [second, second],
  ] as const) {
    if (content !== undefined) writeFileSync(caFile, content);
    assert.equal(await authority.current(), wanted);
  }
  assert.deepEqual(
    lines.map(({ message }) => message),
    [
      'the certificate authority is unusable, keeping the last one',
      'the certificate authority of the API server changed',
      'the certificate authority is unusable, keeping the last one',
      'the certificate authority of the API server changed',
    ],
  );
});

it('is what the kubeconfig holds, or none', async () => {
  assert.equal(await new Authority({ log: silentLogger }, { ca: 'pem' }).current(), 'pem');
  assert.equal(await new Authority({ log: silentLogger }, {}).current(), undefined);
});
