// Where everything of a development cluster lives: below one directory. Paths of sockets are kept short; the kernel
// takes no more than 107 characters.
import { realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { DRIVER_NAME } from '../csi-hostpath/driver-name.ts';

export const DEFAULT_DIRECTORY = '/var/lib/kubelet-dev';

export type Paths = ReturnType<typeof pathsBelow>;

export function pathsBelow(directory: string) {
  const below = (...parts: string[]): string => join(directory, ...parts);
  return {
    directory,
    settings: below('settings.json'),
    supervisor: below('supervisor.json'),
    logs: below('logs'),
    log: (name: string): string => below('logs', `${name}.log`),
    api: below('api'),
    admin: below('api', 'admin.kubeconfig'),
    ca: below('api', 'pki', 'ca.crt'),
    nodeKubeconfig: below('node.kubeconfig'),
    kubeletConfig: below('kubelet.yaml'),
    kubeletRoot: below('kubelet'),
    pageToken: below('kubelet', 'node-page', 'token'),
    kubeletCertificates: below('kubelet-pki'),
    manifests: below('manifests'),
    podLogs: below('pod-logs'),
    volumePlugins: below('volume-plugins'),
    containerd: below('containerd'),
    cniConfig: below('containerd', 'cni', '10-kubelet-dev.conflist'),
    containerdConfig: below('containerd', 'config.toml'),
    containerdSocket: below('containerd', 'c.sock'),
    /** The volumes of claims. */
    csiVolumes: below('volumes'),
    csiSocket: below('kubelet', 'plugins', DRIVER_NAME, 'csi.sock'),
    pluginsRegistry: below('kubelet', 'plugins_registry'),
    example: below('example-pod.yaml'),
    exampleClaim: below('example-claim.yaml'),
  };
}

/** As the kernel shows it in mounts and command lines: absolute, without links and a slash at the end. */
export function realDirectory(path: string): string {
  const whole = resolve(path);
  try {
    return realpathSync(whole);
  } catch {
    // Not there yet, or not readable: its parents may be.
    return whole === '/' ? whole : join(realDirectory(dirname(whole)), basename(whole));
  }
}

export const chosenDirectory = (env: NodeJS.ProcessEnv): string => env['KUBELET_DEV_DIR'] || DEFAULT_DIRECTORY;
