// How this node wants to be registered, from flags and configuration. Pure.
import type { Environment } from '../config/environment.ts';
import { KUBELET_VERSION } from '../lib/version.ts';
import { parseNodeIps } from './addresses.ts';
import type { NodeOptions } from './node-object.ts';

export const nodeOptions = ({
  config,
  flags,
  nodeName,
}: Pick<Environment, 'config' | 'flags' | 'nodeName'>): NodeOptions => ({
  nodeName,
  hostname: nodeName,
  nodeLabels: flags.nodeLabels,
  taints: config.registerWithTaints.map(({ key, value, effect }) => ({
    key,
    effect,
    ...(value === '' ? {} : { value }),
  })),
  registerSchedulable: true,
  providerId: config.providerID,
  externalCloud: flags.cloudProvider === 'external',
  nodeIps: parseNodeIps(flags.nodeIp),
  controllerAttachDetach: config.enableControllerAttachDetach,
  localStorage: config.localStorageCapacityIsolation,
  port: config.port,
  maxImages: config.nodeStatusMaxImages,
  kubeletVersion: KUBELET_VERSION,
});
