// runs: gate
import { describe } from 'node:test';
import { apiServerContract } from './contract.ts';
import { hasRealServer, openEmbedded, openReal } from './servers.ts';

describe('API server contract on the embedded server', () => apiServerContract(openEmbedded));
describe(
  'API server contract on kube-apiserver',
  { skip: hasRealServer() ? false : 'KUBEBUILDER_ASSETS names no kube-apiserver and etcd' },
  () => apiServerContract(openReal),
);
