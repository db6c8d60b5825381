// Features that the node declares for the scheduler, and that pods may ask for.
const DECLARABLE = [
  'ExtendWebSocketsToKubelet',
  'InPlacePodLevelResourcesVerticalScaling',
  'InPlacePodVerticalScalingInitContainers',
  'RestartAllContainersOnContainerExits',
];

/** Takes a runtime that can do it, too. */
const USERNS_ON_HOST_NETWORK = 'UserNamespacesHostNetworkSupport';

export type RuntimeFeatures = { readonly userNamespacesHostNetwork: boolean };

/** Undefined with the gate `NodeDeclaredFeatures` off: then nothing is declared, and nothing asked for. */
export function declaredFeatures(
  gates: { enabled(name: string): boolean },
  runtime: RuntimeFeatures,
): readonly string[] | undefined {
  if (!gates.enabled('NodeDeclaredFeatures')) return undefined;
  return [...DECLARABLE, ...(runtime.userNamespacesHostNetwork ? [USERNS_ON_HOST_NETWORK] : [])]
    .filter((name) => gates.enabled(name))
    .sort();
}
