// The options of a node that wants nothing special, for tests.
import type { NodeOptions } from './node-object.ts';

export const NODE_OPTIONS: NodeOptions = {
  nodeName: 'n1',
  hostname: 'n1',
  nodeLabels: {},
  taints: [],
  registerSchedulable: true,
  providerId: '',
  externalCloud: false,
  nodeIps: [],
  controllerAttachDetach: true,
  localStorage: true,
  port: 10250,
  maxImages: 50,
  kubeletVersion: 'v1.36.4',
};
