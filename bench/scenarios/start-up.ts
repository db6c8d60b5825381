// From exec to the first answer on the health port, without a cluster and without pods, against bare Node doing nothing.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { median, memoryMb, residentMb } from '../statistics.ts';
import { freePort, type World } from '../world.ts';
import type { Scenario } from './scenario.ts';

const { signal } = new AbortController();
const WITHIN_MS = 20_000;

type Memory = ReturnType<typeof memoryMb>;

export const startUp: Scenario = {
  name: 'start-up',
  asks: 'exec to /healthz in standalone mode, memory above bare Node',
  async run(world, { quick, command, env, say }) {
    const rounds = quick ? 5 : 15;
    const cgroups = await openCgroups(systemClock, 'cgroupfs');
    const cgroupRoot = `${world.cgroupRoot}/alone`;
    await cgroups.create(cgroupRoot, {}, signal);
    const seen = { kubelet: [] as number[], node: [] as number[], memory: [] as Memory[], bare: [] as number[] };
    try {
      for (let round = -1; round < rounds; round++) {
        const node = await bareNodeMs();
        const alone = await standalone(world, cgroupRoot, command, env, round >= rounds - 2);
        if (round < 0) continue; // fills the compile cache
        seen.node.push(node);
        seen.kubelet.push(alone.healthyMs);
        if (alone.memory !== undefined) seen.memory.push(alone.memory);
      }
      seen.bare.push(await bareNodeMb());
    } finally {
      await cgroups.destroy(cgroupRoot, signal);
    }
    say(`healthz ${seen.kubelet.map(Math.round).join(' ')}; node ${seen.node.map(Math.round).join(' ')}`);
    const bareMb = median(seen.bare);
    return [
      {
        key: 'start-up.healthz',
        what: 'exec to /healthz, standalone (floor: node -e "")',
        value: median(seen.kubelet),
        unit: 'ms',
        floor: median(seen.node),
        wanted: { atMost: 3 },
      },
      {
        key: 'start-up.memory',
        what: `memory above bare Node (${bareMb.toFixed(0)} MB), standalone`,
        value: median(seen.memory.map((m) => m.resident)) - bareMb,
        unit: 'MB',
        wanted: { atMost: 60 },
      },
      {
        key: 'start-up.anonymous',
        what: 'anonymous memory, standalone',
        value: median(seen.memory.map((m) => m.anonymous)),
        unit: 'MB',
      },
    ];
  },
};

const exited = (child: ChildProcess): Promise<void> => new Promise((resolve) => child.once('exit', () => resolve()));

async function bareNodeMs(): Promise<number> {
  const from = performance.now();
  await exited(spawn(process.execPath, ['-e', ''], { stdio: 'ignore' }));
  return performance.now() - from;
}

async function bareNodeMb(): Promise<number> {
  const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60000)'], { stdio: 'ignore' });
  await sleep(500);
  const mb = residentMb(child.pid ?? 0);
  child.kill('SIGKILL');
  await exited(child);
  return mb;
}

async function standalone(
  world: World,
  cgroupRoot: string,
  program: string,
  env: NodeJS.ProcessEnv,
  measureMemory: boolean,
): Promise<{ healthyMs: number; memory?: Memory }> {
  const dir = join(world.dir, 'alone');
  mkdirSync(join(dir, 'manifests'), { recursive: true });
  const port = freePort();
  writeFileSync(join(dir, 'config.yaml'), configText(world, dir, cgroupRoot, port));
  const flags = [
    `--config=${dir}/config.yaml`,
    `--root-dir=${dir}/kubelet`,
    `--cert-dir=${dir}/pki`,
    '--hostname-override=alone',
  ];
  const log = openSync(join(dir, 'kubelet.log'), 'w');
  const from = performance.now();
  const child = spawn(program, flags, { stdio: ['ignore', log, log], env: { ...process.env, ...env } });
  closeSync(log);
  world.atEnd(async () => void child.kill('SIGKILL'));
  try {
    while (!(await answers(port))) {
      if (child.exitCode !== null || performance.now() - from > WITHIN_MS)
        throw new Error(`no answer on the health port: ${readFileSync(join(dir, 'kubelet.log'), 'utf8').slice(-1500)}`);
      await sleep(1);
    }
    const healthyMs = performance.now() - from;
    if (!measureMemory) return { healthyMs };
    await sleep(4000);
    return { healthyMs, memory: memoryMb(child.pid ?? 0) };
  } finally {
    if (child.exitCode === null) {
      const gone = exited(child);
      child.kill('SIGTERM');
      await gone;
    }
  }
}

/** One bare request: an HTTP client would cost more than what is measured. */
const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'));
    socket.once('data', (data) => {
      resolve(data.includes('200 OK'));
      socket.destroy();
    });
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
  });

const configText = (
  { bare }: World,
  dir: string,
  cgroupRoot: string,
  port: number,
): string => `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: ${dir}/manifests
containerRuntimeEndpoint: ${bare.endpoint}
failCgroupV1: false
failSwapOn: false
cgroupRoot: ${cgroupRoot}
podLogsDir: ${dir}/pod-logs
volumePluginDir: ${dir}/volume-plugins
address: 127.0.0.1
port: ${freePort()}
healthzPort: ${port}
makeIPTablesUtilChains: false
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
featureGates: {KubeletInUserNamespace: true}
`;
