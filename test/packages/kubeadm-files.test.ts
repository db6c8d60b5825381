// The files that kubeadm 1.36 leaves on a node, with the package's drop-in over them as systemd reads them: the command line
// that comes out of it is taken, and means what it does for the Go kubelet.
// runs: gate
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { readCommand, type Configuration } from '../../src/config/configure.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const FILES = join(import.meta.dirname, 'kubeadm');
const DROP_IN = join(import.meta.dirname, '..', '..', 'packaging', '20-kubelet-ts.conf');
/** Where the node has them, and where they are here. */
const PLACES: Readonly<Record<string, string>> = {
  '/var/lib/kubelet/kubeadm-flags.env': 'kubeadm-flags.env',
  '/etc/default/kubelet': 'default-kubelet',
};

/** `Environment=`, `EnvironmentFile=` and `ExecStart=` of drop-ins in their order. */
function commandLine(dropIns: readonly string[], env: Record<string, string>): string[] {
  let exec: string[] = [];
  const assign = (line: string): void => {
    const [, name = '', value = ''] = /^(\w+)=(.*)$/.exec(line.replace(/^"(.*)"$/, '$1')) ?? [];
    env[name] = value.replace(/^"(.*)"$/, '$1');
  };
  for (const text of dropIns)
    for (const line of text.split('\n')) {
      const [, key, value = ''] = /^(\w+)=(.*)$/.exec(line) ?? [];
      if (key === 'Environment') assign(value);
      else if (key === 'EnvironmentFile') {
        const place = PLACES[value.replace(/^-/, '')];
        if (place !== undefined) readFileSync(join(FILES, place), 'utf8').trim().split('\n').forEach(assign);
      } else if (key === 'ExecStart') exec = value === '' ? [] : value.split(' ');
    }
  // A variable that is a word of its own becomes as many words as it has, quotes removed.
  return exec.flatMap((word) => (word.startsWith('$') ? words(env[word.slice(1)] ?? '') : [word]));
}

const words = (text: string): string[] =>
  [...text.matchAll(/(?:[^\s"]|"[^"]*")+/g)].map(([word]) => word.replaceAll('"', ''));

describe("kubeadm's files", () => {
  let dir = '';
  before(() => {
    dir = temporaryFolder('kts-kubeadm-');
  });

  async function start(): Promise<{ argv: string[]; configuration: Configuration }> {
    const dropIns = [join(FILES, '10-kubeadm.conf'), DROP_IN].map((path) => readFileSync(path, 'utf8'));
    const [program, ...argv] = commandLine(dropIns, {});
    assert.equal(program, '/usr/lib/kubelet-ts/bin/kubelet');
    writeFileSync(join(dir, 'config.yaml'), readFileSync(join(FILES, 'config.yaml')));
    const here = argv.map((arg) => arg.replace('/var/lib/kubelet/config.yaml', join(dir, 'config.yaml')));
    const command = await readCommand(here, {
      cgroupVersion: 2,
      onlineCpus: () => new Set([0, 1]),
    });
    assert.ok(command.do === 'run');
    return { argv, configuration: command.configuration };
  }

  it('become the command line the Go kubelet gets', async () => {
    const { argv } = await start();
    assert.deepEqual(argv, [
      '--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf',
      '--kubeconfig=/etc/kubernetes/kubelet.conf',
      '--config=/var/lib/kubelet/config.yaml',
      '--node-ip=192.0.2.10',
      '--node-labels=tier=web,zone=a',
    ]);
  });

  it('are taken without a complaint', async () => {
    const { configuration } = await start();
    assert.deepEqual(configuration.warnings, []);
  });

  it('mean the same', async () => {
    const { config, flags } = (await start()).configuration;
    assert.equal(flags.kubeconfig, '/etc/kubernetes/kubelet.conf');
    assert.equal(flags.bootstrapKubeconfig, '/etc/kubernetes/bootstrap-kubelet.conf');
    assert.equal(config.cgroupDriver, 'systemd');
    assert.equal(config.containerRuntimeEndpoint, 'unix:///var/run/containerd/containerd.sock');
    assert.equal(config.staticPodPath, '/etc/kubernetes/manifests');
    assert.equal(config.rotateCertificates, true);
    assert.equal(config.authorization.mode, 'Webhook');
    assert.deepEqual(config.clusterDNS, ['10.96.0.10']);
    // Zero stands for the default.
    assert.equal(config.syncFrequencyMs, 60_000);
    assert.equal(config.nodeStatusUpdateFrequencyMs, 10_000);
    assert.equal(config.runtimeRequestTimeoutMs, 120_000);
    assert.equal(config.shutdownGracePeriodMs, 0);
  });
});
