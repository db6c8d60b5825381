// kubeconfig documents with everything embedded.
import { stringify } from 'yaml';
import type { Credential } from './pki.ts';

export type KubeconfigUser = { readonly name: string } & (
  | { readonly credential: Credential }
  | { readonly token: string }
);

const base64 = (text: string): string => Buffer.from(text).toString('base64');

export function kubeconfig(server: string, caPem: string, user: KubeconfigUser, cluster = 'kubelet-dev'): string {
  const context = `${user.name}@${cluster}`;
  const secret =
    'token' in user
      ? { token: user.token }
      : {
          'client-certificate-data': base64(user.credential.certificatePem),
          'client-key-data': base64(user.credential.keyPem),
        };
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': context,
    clusters: [{ name: cluster, cluster: { server, 'certificate-authority-data': base64(caPem) } }],
    users: [{ name: user.name, user: secret }],
    contexts: [{ name: context, context: { cluster, user: user.name } }],
  });
}
