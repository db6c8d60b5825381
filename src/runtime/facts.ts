// What is fixed for the life of the process: configuration and machine.
import { join } from 'node:path';
import type { IpFamily } from '../core/pod-ips.ts';
import type { CrashBackoffOptions } from './crash-backoff.ts';
import type { ContainerFacts } from './container-config.ts';
import type { SandboxFacts } from './sandbox-config.ts';

export type RuntimeFacts = SandboxFacts &
  ContainerFacts & {
    readonly rootDir: string;
    /** `/var/log/containers`. */
    readonly containerLogsDir: string;
    readonly clusterDns: readonly string[];
    /** Path of the node's resolver file; empty to use none. */
    readonly resolvConf: string;
    /** `/etc/hosts` of the node. */
    readonly nodeHostsFile: string;
    readonly crashBackoff: CrashBackoffOptions;
    /** Of a pod's first address. */
    readonly ipFamily: IpFamily;
    /** `1.36`. */
    readonly kubernetesVersion: string;
  };

export const podDir = (rootDir: string, uid: string): string => join(rootDir, 'pods', uid);
