// Ids that must not be mixed up. They are strings on the wire and distinct types here.

export type PodUid = string & { readonly brand: 'PodUid' };
export type ContainerId = string & { readonly brand: 'ContainerId' };
export type SandboxId = string & { readonly brand: 'SandboxId' };

export const podUid = (raw: string): PodUid => raw as PodUid;
export const containerId = (raw: string): ContainerId => raw as ContainerId;
export const sandboxId = (raw: string): SandboxId => raw as SandboxId;
