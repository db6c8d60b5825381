// Reasons a user meets in a container's waiting state. A closed set, so that a typo is a compile error.
import { boundedMessage } from '../lib/errors.ts';

export type WaitingReason =
  | 'ContainerCreating'
  | 'PodInitializing'
  | 'CrashLoopBackOff'
  | 'ErrImagePull'
  | 'ImagePullBackOff'
  | 'ErrImageNeverPull'
  | 'InvalidImageName'
  | 'ImageInspectError'
  | 'RegistryUnavailable'
  | 'SignatureValidationFailed'
  | 'CreateContainerConfigError'
  | 'PreCreateHookError'
  | 'CreateContainerError'
  | 'PreStartHookError'
  | 'RunContainerError'
  | 'PostStartHookError';

/** Why a container could not be started: becomes its waiting state and an event. */
export class ContainerStartError extends Error {
  readonly reason: WaitingReason;

  constructor(reason: WaitingReason, message: string, cause?: unknown) {
    super(boundedMessage(message), cause === undefined ? undefined : { cause });
    this.name = 'ContainerStartError';
    this.reason = reason;
  }
}
