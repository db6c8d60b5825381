// A kubelet starts while the file system of its root directory has no byte left, no inode left, or is read-only, with each kept
// file or directory missing in turn. Whatever is missing, the node is up: /healthz is ok, a pod is stopped, another is evicted.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { KubeClient } from '../../src/kube/client.ts';
import { PODS } from '../../src/kube/resources.ts';
import { errnoOf } from '../../src/lib/errors.ts';
import { startTestApiServer, type TestApiServer } from '../harness/api-server.ts';
import { connectClient } from '../harness/connect-client.ts';
import { makeNodeFolder, removeNodeFolder } from '../harness/node-folder.ts';
import { freePort } from '../harness/ports.ts';
import { until } from '../harness/until.ts';
import { FrozenNode } from './frozen/frozen-node.ts';

const SIZE = 'size=4m,nr_inodes=3000';
/** Of the kubelet's files those that pods need to run are there; the kubelet makes the rest anew. */
const KEPT = [
  '',
  'actuated_pods_state',
  'allocated_pods_state',
  'checkpoints',
  'cpu_manager_state',
  'device-plugins',
  'dra_manager_state',
  'image_manager',
  'memory_manager_state',
  'node',
  'node-page',
  'plugins',
  'plugins_registry',
  'pod-resources',
];
const never = new AbortController().signal;

/** How a file system refuses writes; `end` takes it back. */
type Refusal = { readonly name: string; begin(root: string): void; end(root: string): void };

const fillers = (root: string): string[] => readdirSync(root).filter((name) => name.startsWith('fill-'));
const removeFillers = (root: string): void => {
  for (const name of fillers(root)) rmSync(join(root, name));
};
function fill(root: string, bytes: number): void {
  try {
    for (let i = 0; ; i++) writeFileSync(join(root, `fill-${bytes}-${i}`), Buffer.alloc(bytes));
  } catch (err) {
    if (errnoOf(err) !== 'ENOSPC') throw err;
  }
}
const remount = (how: 'ro' | 'rw') => (root: string) => void execFileSync('mount', ['-o', `remount,${how}`, root]);

const REFUSALS: readonly Refusal[] = [
  {
    name: 'no byte',
    begin: (root) => [65_536, 4096].forEach((bytes) => fill(root, bytes)),
    end: removeFillers,
  },
  { name: 'no inode', begin: (root) => fill(root, 0), end: removeFillers },
  { name: 'read-only', begin: remount('ro'), end: remount('rw') },
];

type Parts = { readonly api: TestApiServer; readonly client: KubeClient };

/** A kubelet whose root directory is a small file system of its own, with two pods for each case: one to stop, one to evict. */
class DiskNode {
  readonly root: string;
  readonly #saved: string;
  readonly #name: string;
  readonly #client: KubeClient;
  readonly #node: FrozenNode;
  readonly #healthzPort: number;
  readonly #victims = new Set<string>();

  constructor({ api, client }: Parts, o: { dir: string; name: string; healthzPort: number; pagePort: number }) {
    const { name, healthzPort } = o;
    const dir = join(o.dir, name);
    this.root = join(dir, 'kubelet');
    this.#saved = join(dir, 'saved');
    this.#name = name;
    this.#client = client;
    this.#healthzPort = healthzPort;
    mkdirSync(this.root, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', SIZE, 'tmpfs', this.root]);
    const flags = ['--eviction-hard=memory.available<100Mi', `--node-page-port=${o.pagePort}`];
    this.#node = new FrozenNode({ name, dir, api, client, rootDir: this.root, flags, healthzPort });
  }

  /** Lets the kubelet make all that it keeps, and starts the pods. */
  async prepare(): Promise<void> {
    const node = this.#node;
    await node.start();
    const names: string[] = [];
    for (const i of KEPT.keys()) {
      const victim = `${this.#name}-goes-${i}`;
      names.push(this.#subject(i), victim);
      this.#victims.add(victim);
      await node.create(node.pod(this.#subject(i)));
      await node.create(node.pod(victim, { priorityClassName: '' }));
    }
    await until('all pods run', () => names.every((name) => node.runs(name)), 60_000);
    await until('all that is kept is there', () => KEPT.every((name) => existsSync(join(this.root, name))));
    node.signal('SIGTERM');
    await node.exited();
    cpSync(this.root, this.#saved, { recursive: true, filter: (path) => !path.endsWith('.sock') });
  }

  kept(): readonly string[] {
    return readdirSync(this.#saved).filter((name) => name !== 'pods');
  }

  /** Starts the kubelet without one of its files, where nothing can be written. */
  async staysUp(refusal: Refusal, missing: string): Promise<void> {
    const node = this.#node;
    const subject = this.#subject(KEPT.indexOf(missing));
    this.#restore();
    if (missing !== '') rmSync(join(this.root, missing), { recursive: true, force: true });
    refusal.begin(this.root);
    node.run();
    try {
      await until('healthz is ok', async () => (await this.#healthz()) === 'ok' || !node.running);
      this.#isUp();
      await node.delete(subject);
      await until(`${subject} stops`, () => !node.runs(subject) || !node.running);
      node.memory('short');
      const victim = await until('a pod is evicted', () => this.#evicted());
      await until(`${victim} stops`, () => !node.runs(victim));
      this.#victims.delete(victim);
      assert.equal(await this.#healthz(), 'ok');
      this.#isUp();
    } finally {
      node.memory('enough');
      node.signal('SIGKILL');
      await node.exited();
      refusal.end(this.root);
    }
  }

  stop(): Promise<void> {
    return this.#node.stop();
  }

  readonly #subject = (i: number): string => `${this.#name}-stops-${i}`;

  #isUp(): void {
    assert.ok(this.#node.running, `the kubelet ended: ${this.#node.log().slice(-600)}`);
  }

  async #healthz(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.#healthzPort}/healthz`)).text();
  }

  async #evicted(): Promise<string | undefined> {
    const query = { fieldSelector: 'status.phase=Failed' };
    const { items } = await this.#client.list(PODS, { namespace: 'default', query }, never);
    return items
      .filter(({ status }) => status?.reason === 'Evicted')
      .map(({ metadata }) => metadata.name)
      .find((name) => this.#victims.has(name));
  }

  #restore(): void {
    for (const name of readdirSync(this.root)) if (name !== 'pods') rmSync(join(this.root, name), { recursive: true });
    cpSync(this.#saved, this.root, { recursive: true, filter: (path) => path !== join(this.#saved, 'pods') });
  }
}

const skip = process.getuid?.() !== 0 && 'needs root';

/** All kubelets run at once: they wait more than they work. */
describe('a kubelet that starts on a disk that takes nothing', { skip, concurrency: true }, () => {
  let dir: string;
  let api: TestApiServer;
  let client: KubeClient;
  before(async () => {
    dir = await makeNodeFolder();
    api = await startTestApiServer(join(dir, 'api'));
    client = await connectClient(api.adminKubeconfigPath);
  });
  after(async () => {
    await api?.stop();
    await removeNodeFolder(dir);
  });

  for (const [i, refusal] of REFUSALS.entries())
    describe(refusal.name, { concurrency: 1 }, () => {
      let node: DiskNode;
      before(async () => {
        const ports = { healthzPort: await freePort(), pagePort: await freePort() };
        node = new DiskNode({ api, client }, { dir, name: `disk${i}`, ...ports });
        await node.prepare();
      });
      after(() => node?.stop());

      it('is tried with everything that the kubelet keeps', () => {
        const unknown = node.kept().filter((name) => !KEPT.includes(name));
        assert.deepEqual(unknown, []);
      });
      for (const missing of KEPT)
        it(`${missing === '' ? 'nothing' : missing} missing`, () => node.staysUp(refusal, missing));
    });
});
