import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { it } from 'node:test';
import { newKeyPair } from '../lib/x509/keys.ts';
import { clientTemplate, requestName } from './client-bootstrap.ts';

it('a request is named as upstream names it, so that both kubelets find it', () => {
  const { publicKey } = newKeyPair('ec');
  const der = publicKey.export({ type: 'spki', format: 'der' }).toString('base64url');
  const encoded = (text: string): string => Buffer.from(text).toString('base64url');
  const parts = [der, ...['system:node:n1', 'system:nodes', 'digital signature', 'client auth'].map(encoded)];
  const digest = createHash('sha512-256')
    .update(`${parts.join('|')}|`)
    .digest('base64url');
  const usages = ['digital signature', 'client auth'];
  assert.equal(requestName({ publicKey }, clientTemplate('n1'), usages), `node-csr-${digest}`);
});
