import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { selfSignedAuthority } from '../../lib/x509/certificate.ts';
import { newKeyPair } from '../../lib/x509/keys.ts';
import { embeddedCertificate } from './gather.ts';

const rootDir = mkdtempSync(join(tmpdir(), 'doctor-'));
after(() => rmSync(rootDir, { recursive: true }));

const kubeconfig = join(rootDir, 'kubelet.conf');
const notAfterMs = Date.UTC(2027, 0, 1);
const cert = selfSignedAuthority({ commonName: 'n' }, newKeyPair('ec'), { notBeforeMs: 0, notAfterMs });
const data = (text: string): string =>
  `client-certificate-data: ${Buffer.from(text).toString('base64')}, client-key-data: eA==`;
const storedPath = join(rootDir, 'pki', 'kubelet-client-current.pem');

it('a certificate embedded in the kubeconfig is reported where certificates are rotated', async () => {
  const inFiles = 'client-certificate: a.pem, client-key: a.pem';
  const table: readonly (readonly [string, string, boolean | undefined, string, number | undefined | 'none'])[] = [
    ['by the running kubelet', data(cert), true, '', notAfterMs],
    ['by its file', data(cert), undefined, 'rotateCertificates: true\n', notAfterMs],
    ['not rotated', data(cert), false, 'rotateCertificates: true\n', 'none'],
    ['not rotated, by its file', data(cert), undefined, 'rotateCertificates: false\n', 'none'],
    ['no certificate', data('x'), true, '', undefined],
    ['in a file', inFiles, true, '', 'none'],
  ];
  for (const [name, user, rotateCertificates, config, want] of table) {
    writeFileSync(join(rootDir, 'config.yaml'), config);
    writeFileSync(
      kubeconfig,
      `{current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}], clusters: [{name: k, cluster: {server: "https://h"}}], users: [{name: u, user: {${user}}}]}`,
    );
    const found = await embeddedCertificate({ kubeconfig, rootDir, rotateCertificates });
    assert.deepEqual(found, want === 'none' ? undefined : { kubeconfig, storedPath, notAfterMs: want }, name);
  }
  const missing = { kubeconfig: join(rootDir, 'none'), rootDir, rotateCertificates: true };
  assert.equal(await embeddedCertificate(missing), undefined);
});
