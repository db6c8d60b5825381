// Features that the node declares for the scheduler, and that pods may ask for.
const DECLARABLE = [
  'ExtendWebSocketsToKubelet',
  'InPlacePodLevelResourcesVerticalScaling',
  'InPlacePodVerticalScalingInitContainers',
  'RestartAllContainersOnContainerExits',
];

export const declaredFeatures = (gates: { enabled(name: string): boolean }): readonly string[] =>
  DECLARABLE.filter((name) => gates.enabled(name)).sort();
