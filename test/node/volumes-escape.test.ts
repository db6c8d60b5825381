// What hostile containers try on a whole node with the files the kubelet shares with them: hosts, termination messages,
// environment files, host paths. The kubelet, which is root, must not be led to read or write anything else, nor wait.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Container, ContainerStatus, Pod, PodSpec } from '../../src/core/pod.ts';
import { PODS } from '../../src/kube/resources.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';

const namespace = 'default';
const never = new AbortController().signal;
const SECRET = 'only root may know this';

// Each with pods of its own.
describe('files shared with hostile containers', { concurrency: true }, () => {
  let node: TestNode;
  let victim: string;
  before(async () => {
    node = await startNode({ config: 'crashLoopBackOff: {maxContainerRestartPeriod: 1s}' });
    mkdirSync(join(node.dir, 'victim'));
    victim = join(node.dir, 'victim', 'secret');
    writeFileSync(victim, SECRET, { mode: 0o600 });
  });
  after(async () => {
    assert.equal(readFileSync(victim, 'utf8'), SECRET);
    assert.equal(statSync(victim).mode & 0o777, 0o600);
    assert.doesNotMatch(await node.log(), new RegExp(SECRET));
    await node.stop();
  });

  const container = (name: string, script: string, more: Partial<Container> = {}): Container => ({
    name,
    image: BUSYBOX_IMAGE,
    imagePullPolicy: 'Never',
    command: ['sh', '-c', script],
    ...more,
  });

  async function create(name: string, spec: PodSpec): Promise<Pod> {
    const usual = { nodeName: NODE_NAME, terminationGracePeriodSeconds: 0, automountServiceAccountToken: false };
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace },
      spec: { ...usual, ...spec },
    };
    return until(`${name} may be made`, () => node.client.create<Pod>(PODS, { namespace }, pod, never));
  }

  const statusOf = async (name: string): Promise<ContainerStatus | undefined> =>
    (await node.client.get(PODS, { namespace, name }, never)).status?.containerStatuses?.[0];
  const comesTo = (name: string, what: string, check: (status: ContainerStatus) => boolean): Promise<ContainerStatus> =>
    until(`${name} ${what}`, async () => {
      const status = await statusOf(name);
      return status !== undefined && check(status) && status;
    });

  it('a container cannot replace them, and junk in its hosts file is gone with its next start', async () => {
    const script = `
      for f in /dev/termination-log /etc/hosts; do rm -f $f; ln -sf ${victim} $f; mv $f /tmp/moved; ln ${victim} $f; done 2> /dev/null
      grep -q junk /etc/hosts && exec sleep 1000
      [ -L /etc/hosts -o -L /dev/termination-log ] && exec sleep 1000
      echo junk >> /etc/hosts; echo said > /dev/termination-log; exit 1`;
    await create('replaces', { containers: [container('c', script)] });
    const status = await comesTo('replaces', 'restarts', (s) => s.restartCount >= 2);
    assert.equal(status.lastState?.terminated?.message, 'said\n');
  });

  it('links planted in the pod directory are neither written nor read through', async () => {
    const script = `
      cd /pods/$UID; [ -e planted ] && exec sleep 1000; touch planted
      for f in etc-hosts containers/c/*; do rm -f $f; ln -s ${victim} $f; done
      exit 1`;
    const env = [{ name: 'UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } }];
    const pod = await create('plants', {
      volumes: [{ name: 'pods', hostPath: { path: join(node.dir, 'kubelet', 'pods') } }],
      containers: [container('c', script, { env, volumeMounts: [{ name: 'pods', mountPath: '/pods' }] })],
    });
    const status = await comesTo('plants', 'runs again', (s) => s.restartCount === 1 && s.state.running !== undefined);
    assert.equal(status.lastState?.terminated?.message ?? '', '');
    const hosts = join(node.dir, 'kubelet', 'pods', pod.metadata.uid ?? '', 'etc-hosts');
    assert.match(readFileSync(hosts, 'utf8'), /^# Kubernetes-managed hosts file\.\n/);
  });

  it('a pipe in place of the termination messages keeps nobody waiting', async () => {
    const pipes = Array.from({ length: 8 }, (_, i) => `pipe-${i}`);
    await create('pipes', {
      restartPolicy: 'Never',
      volumes: [{ name: 'v', emptyDir: {} }],
      initContainers: [
        container('plant', `cd /v; mkfifo ${pipes.join(' ')}`, { volumeMounts: [{ name: 'v', mountPath: '/v' }] }),
      ],
      containers: pipes.map((pipe) =>
        container(pipe, 'true', { volumeMounts: [{ name: 'v', mountPath: '/dev/termination-log', subPath: pipe }] }),
      ),
    });
    await until('the pod has ended', async () => {
      const pod = await node.client.get(PODS, { namespace, name: 'pipes' }, never);
      return pod.status?.phase === 'Succeeded';
    });
    await create('after', { containers: [container('c', 'sleep 1000')] });
    await comesTo('after', 'runs', (s) => s.state.running !== undefined);
  });

  it('an environment file that is a link out of its volume starts no container', async () => {
    const script = `ln -s ${victim} /v/env; ln -s ../../../../../../../../..${victim} /v/relative`;
    const fromFile = (path: string): Partial<Container> => ({
      env: [{ name: 'V', valueFrom: { fileKeyRef: { volumeName: 'v', path, key: 'A' } } }],
    });
    await create('env', {
      restartPolicy: 'Never',
      volumes: [{ name: 'v', emptyDir: {} }],
      initContainers: [container('plant', script, { volumeMounts: [{ name: 'v', mountPath: '/v' }] })],
      containers: [
        container('absolute', 'sleep 1000', fromFile('env')),
        container('relative', 'sleep 1000', fromFile('relative')),
      ],
    });
    const pod = await until('both wait', async () => {
      const now = await node.client.get(PODS, { namespace, name: 'env' }, never);
      const reasons = (now.status?.containerStatuses ?? []).map((s) => s.state.waiting?.reason);
      return reasons.length === 2 && reasons.every((r) => r === 'CreateContainerConfigError') && now;
    });
    for (const status of pod.status?.containerStatuses ?? [])
      assert.match(status.state.waiting?.message ?? '', /is outside of volume "v"/);
  });

  it('a host path that steps up is refused, in a static pod too, which no API server checked', async () => {
    const manifest = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'up' },
      spec: {
        volumes: [{ name: 'v', hostPath: { path: `${node.dir}/manifests/../victim` } }],
        containers: [container('c', 'cat /v/secret; sleep 1000', { volumeMounts: [{ name: 'v', mountPath: '/v' }] })],
      },
    };
    writeFileSync(join(node.manifests, 'up.json'), JSON.stringify(manifest));
    await untilSeen(
      'it is said',
      () => node.log(),
      (text) => /up\.json.*must not contain '\.\.'/.test(text),
    );
    await assert.rejects(node.client.get(PODS, { namespace, name: `up-${NODE_NAME}` }, never), /not found/);
  });
});
