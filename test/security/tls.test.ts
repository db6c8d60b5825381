// What the main port's TLS accepts, by trying every suite there is, with a key of either kind.
// runs: gate
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { connect, getCiphers, type ConnectionOptions } from 'node:tls';
import { silentLogger } from '../../src/lib/logger.ts';
import { Listener } from '../../src/server/listener.ts';
import { exactly } from '../../src/server/router.ts';
import { tlsSettings } from '../../src/server/tls-settings.ts';
import { until } from '../harness/until.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const dir = temporaryFolder('kts-tls-');

function pairOf(kind: 'rsa' | 'ec'): { cert: string; key: string } {
  const [cert, key] = [join(dir, `${kind}.crt`), join(dir, `${kind}.key`)];
  const how = kind === 'rsa' ? ['rsa:2048'] : ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  execFileSync(
    'openssl',
    ['req', '-x509', '-nodes', '-subj', '/CN=n', '-newkey', ...how, '-keyout', key, '-out', cert],
    {
      stdio: 'ignore',
    },
  );
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
}

/** The suite that was agreed on; undefined when none was. */
const agreed = (port: number, options: ConnectionOptions): Promise<string | undefined> =>
  new Promise((resolve) => {
    try {
      const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options }, () => {
        resolve(socket.getCipher().standardName);
        socket.destroy();
      });
      socket.on('error', () => resolve(undefined));
    } catch {
      // Suites that this OpenSSL does not offer at all.
      resolve(undefined);
    }
  });

describe('TLS of the main port, as configured by default', () => {
  for (const kind of ['rsa', 'ec'] as const)
    it(`agrees on forward secrecy and authenticated encryption only, ${kind} key`, async () => {
      const stop = new AbortController();
      const choice = tlsSettings({ minVersion: '', cipherSuites: [], curves: [] });
      const listener = new Listener(
        { endpoint: exactly('/ok', ({ response }) => void response.end('ok')), log: silentLogger },
        { name: 'tls', address: '127.0.0.1', port: 0, tls: () => ({ ...choice, ...pairOf(kind) }) },
      );
      const running = listener.run(stop.signal);
      try {
        const port = await until('the port is open', () => listener.boundPort);
        const seen: string[] = [];
        for (const suite of getCiphers().filter((name) => !name.startsWith('tls_'))) {
          const options = {
            ciphers: `${suite.toUpperCase()}:@SECLEVEL=0`,
            minVersion: 'TLSv1',
            maxVersion: 'TLSv1.2',
          } as const;
          const got = await agreed(port, options);
          if (got !== undefined) seen.push(got);
        }
        assert.ok(seen.length > 0, 'TLS 1.2 is spoken');
        assert.deepEqual(
          seen.filter((name) => !/^TLS_ECDHE_(RSA|ECDSA)_WITH_(AES_\d+_GCM|CHACHA20_POLY1305)/.test(name)),
          [],
        );
        for (const old of ['TLSv1', 'TLSv1.1'] as const)
          assert.equal(
            await agreed(port, { minVersion: old, maxVersion: old, ciphers: 'ALL:@SECLEVEL=0' }),
            undefined,
            old,
          );
        assert.match((await agreed(port, { minVersion: 'TLSv1.3' })) ?? '', /^TLS_(AES|CHACHA20)/);
      } finally {
        stop.abort();
        await running;
      }
    });
});
