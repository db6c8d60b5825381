// A row for every cause: what is known, and what is said of it.
import { ago, podOf, appWith, eventOf, withApp, crashed, start, init, checkRows } from './why.fixture.ts';

checkRows('why a container does not run', [
  // ---- making and starting the container
  [
    'SecretMissing',
    'failing',
    start('CreateContainerConfigError', 'secret "db" not found'),
    'Container "app" cannot start because a secret that its environment refers to is not there (secret "db" not found), next try in 17 s.',
  ],
  [
    'ConfigMapMissing',
    'failing',
    start('CreateContainerConfigError', "couldn't find key url in ConfigMap shop/settings"),
    `Container "app" cannot start because a config map that its environment refers to is not there (couldn't find key url in ConfigMap shop/settings), next try in 17 s.`,
  ],
  [
    'RunsAsRoot',
    'failing',
    start('CreateContainerConfigError', 'container has runAsNonRoot and image will run as root'),
    'Container "app" cannot start because it must not run as root (runAsNonRoot), but its image does (container has runAsNonRoot and image will run as root), next try in 17 s.',
  ],
  [
    'SubPathFailed',
    'failing',
    start('CreateContainerConfigError', 'failed to prepare subPath for volumeMount "data" of container "app"'),
    'Container "app" cannot start because a subPath of one of its mounts could not be prepared (failed to prepare subPath for volumeMount "data" of container "app"), next try in 17 s.',
  ],
  [
    'ConfigInvalid',
    'failing',
    start('CreateContainerConfigError', 'services have not yet been read at least once, cannot construct envvars'),
    'Container "app" cannot start because what it needs could not be put together (services have not yet been read at least once, cannot construct envvars), next try in 17 s.',
  ],
  [
    'NoCommand',
    'failing',
    start('CreateContainerError', 'no command specified'),
    'Container "app" cannot start because neither the image nor the pod says which program to run (no command specified), next try in 17 s.',
  ],
  [
    'ContainerNameTaken',
    'failing',
    start('CreateContainerError', 'failed to reserve container name: name "app_web" is reserved for "0123"'),
    'Container "app" cannot start because the runtime still has a container of this name (failed to reserve container name: name "app_web" is reserved for "0123"), next try in 17 s.',
  ],
  [
    'CreateFailed',
    'failing',
    start('CreateContainerError', 'context deadline exceeded'),
    'Container "app" cannot start because the runtime could not create it (context deadline exceeded), next try in 17 s.',
  ],
  [
    'CommandNotFound',
    'failing',
    start('RunContainerError', 'exec: "serve": executable file not found in $PATH'),
    'Container "app" cannot start because its program is not in the image (exec: "serve": executable file not found in $PATH), next try in 17 s.',
  ],
  [
    'CommandNotExecutable',
    'failing',
    start('RunContainerError', 'exec: "/app/serve": permission denied'),
    'Container "app" cannot start because its program may not be executed (exec: "/app/serve": permission denied), next try in 17 s.',
  ],
  [
    'ImageWrongPlatform',
    'failing',
    start('RunContainerError', 'exec /app/serve: exec format error'),
    'Container "app" cannot start because its program is built for another processor (exec /app/serve: exec format error), next try in 17 s.',
  ],
  [
    'MountIntoContainerFailed',
    'failing',
    start('RunContainerError', 'error mounting "/x" to rootfs at "/etc/hosts": not a directory'),
    'Container "app" cannot start because a mount could not be made inside of it (error mounting "/x" to rootfs at "/etc/hosts": not a directory), next try in 17 s.',
  ],
  [
    'CgroupLimitFailed',
    'failing',
    start('RunContainerError', 'unable to apply cgroup configuration: write memory.max'),
    'Container "app" cannot start because its resource limits could not be applied (unable to apply cgroup configuration: write memory.max), next try in 17 s.',
  ],
  [
    'StartFailed',
    'failing',
    start('RunContainerError', 'shim went away'),
    'Container "app" cannot start because the runtime could not start it (shim went away), next try in 17 s.',
  ],
  [
    'DevicesNotReady',
    'failing',
    start('PreCreateHookError', 'claim gpu is not prepared'),
    'Container "app" cannot start because its devices or claims could not be prepared (claim gpu is not prepared), next try in 17 s.',
  ],
  [
    'DevicesNotReady',
    'failing',
    start('PreStartHookError', 'device plugin PreStartContainer failed'),
    'Container "app" cannot start because its devices could not be prepared before the start (device plugin PreStartContainer failed), next try in 17 s.',
  ],
  [
    'PostStartHookFailed',
    'failing',
    {
      ...start('PostStartHookError', 'command exited with 1'),
      events: [eventOf('FailedPostStartHook', 'PostStartHook failed')],
    },
    'Container "app" cannot start because its postStart hook failed, so it was stopped again, next try in 17 s.',
  ], // ---- it ended
  [
    'CrashLoopExitedWithError',
    'failing',
    { status: crashed(1, 'Error') },
    'Container "app" ends with exit code 1 and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoopCompleted',
    'failing',
    { status: crashed(0, 'Completed') },
    'Container "app" ends by itself without an error (exit code 0) and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoopCommandNotExecutable',
    'failing',
    { status: crashed(126) },
    'Container "app" ended because its program may not be executed (exit code 126) and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoopCommandNotFound',
    'failing',
    { status: crashed(127) },
    'Container "app" ended because its program was not found (exit code 127) and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoopCommandNotFound',
    'failing',
    {
      status: crashed(
        128,
        'StartError',
        'failed to create containerd task: unable to start container process: exec: "serve": executable file not found in $PATH: unknown',
      ),
    },
    'Container "app" cannot start because its program is not in the image (exec: "serve": executable file not found in $PATH) and is tried again after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoopStartFailed',
    'failing',
    { status: crashed(128, 'StartError', 'failed to create containerd task: something else') },
    'Container "app" cannot start because the runtime could not start it and is tried again after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoopAborted',
    'failing',
    { status: crashed(134) },
    'Container "app" gave up with an assertion (SIGABRT, exit code 134) and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoopKilled',
    'failing',
    { status: crashed(137) },
    'Container "app" was killed (SIGKILL, exit code 137) and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoopSegfault',
    'failing',
    { status: crashed(139) },
    'Container "app" crashed with a memory access error (SIGSEGV, exit code 139) and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoopTerminated',
    'failing',
    { status: crashed(143) },
    'Container "app" was asked to stop (SIGTERM, exit code 143) and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoopOutOfMemory',
    'failing',
    { status: crashed(137, 'OOMKilled'), pod: appWith({ resources: { limits: { memory: '64Mi' } } }) },
    'Container "app" was killed because it needed more memory than its limit of 64Mi and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoopOutOfMemory',
    'failing',
    { status: crashed(137), events: [eventOf('OOMKilling', 'Memory cgroup out of memory: Killed process 7 (app)')] },
    'Container "app" was killed because it needed more memory than the node had and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoopLivenessProbeFailed',
    'failing',
    {
      status: crashed(137, 'Error'),
      events: [
        eventOf('Killing', 'Container app failed liveness probe, will be restarted', {
          involvedObject: { fieldPath: 'spec.containers{app}' },
        }),
      ],
    },
    'Container "app" was stopped because its liveness or startup probe failed and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoopContainerLost',
    'failing',
    { status: crashed(137, 'ContainerStatusUnknown') },
    'Container "app" was lost (the runtime no longer knows it) and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'CrashLoop',
    'failing',
    { status: withApp({ waiting: { reason: 'CrashLoopBackOff' } }) },
    'Container "app" keeps ending and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'ExitedWithError',
    'failing',
    { status: withApp({ terminated: { exitCode: 3, startedAt: ago(9), finishedAt: ago(1) } }) },
    'Container "app" ends with exit code 3 and is restarted, next try in 17 s.',
  ],
  [
    'ContainerCompleted',
    'progressing',
    {
      pod: podOf({ restartPolicy: 'Never' }),
      status: withApp({ terminated: { exitCode: 0, startedAt: ago(9), finishedAt: ago(1) } }),
    },
    'Container "app" has ended without an error (exit code 0) and is not restarted.',
  ], // ---- init containers
  [
    'InitContainerRunning',
    'progressing',
    init({ running: { startedAt: ago(75) } }),
    'Init container "migrate" (1 of 1) runs for 1 min 15 s now; the others wait for it.',
  ],
  [
    'CrashLoopExitedWithError',
    'failing',
    init(
      { waiting: { reason: 'CrashLoopBackOff' } },
      { lastState: { terminated: { exitCode: 2, startedAt: ago(8), finishedAt: ago(7) } } },
    ),
    'Init container "migrate" ends with exit code 2 and is restarted after a back-off, next try in 17 s.',
  ],
  [
    'ImageNotFound',
    'failing',
    init({ waiting: { reason: 'ErrImagePull', message: 'not found' } }),
    'Image "reg.io/m:1" of container "migrate" cannot be pulled because the registry does not have it, next try in 17 s.',
  ],
]);
