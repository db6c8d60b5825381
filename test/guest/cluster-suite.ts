// Runs in the guest, bundled: the packaged kubelet in a cluster. Each line it prints is one check, as in suite.sh.
import { isAbsolute } from 'node:path';
import { compareGolden } from './golden-v2.ts';
import { command, GuestNode } from './guest-node.ts';
import { addSwap, EVICTION, LIMITED, MEMORY, podsOf, type Scenario } from './scenarios.ts';

const EXCERPT = 1500;
const [dir = '', suite = '', release = ''] = process.argv.slice(2);
if (!isAbsolute(dir)) throw new Error('cluster-suite.mjs <folder> <suite> <Debian release>');

const at = (): string => `guest: after ${(performance.now() / 1000).toFixed(0)} s`;

async function report(name: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
    console.log(`check: ${name} ok\n${at()}: ${name}`);
  } catch (err) {
    const text = err instanceof Error ? err.message : String(err);
    console.log(`check: ${name} FAILED ${text.slice(0, EXCERPT).replaceAll('\n', '\nguest: ')}`);
    for (const unit of ['containerd', 'kubelet'])
      console.log(await command('journalctl', '-u', unit, '-n', '30', '-o', 'cat', '--no-pager'));
  }
}

async function all(scenarios: readonly Scenario[], node: GuestNode): Promise<void> {
  for (const [name, run] of scenarios) await report(name, () => run(node));
}

console.log(`${at()}: the suite begins`);
const node = await GuestNode.open(dir);
console.log(`${at()}: the API server listens`);
if (suite === 'memory' || suite === 'eviction') {
  await addSwap();
  await node.restart(LIMITED);
  console.log('check: the node is ready ok');
  await all(suite === 'memory' ? MEMORY : EVICTION, node);
} else if (suite === 'pods') {
  await node.restart('');
  console.log('check: the node is ready ok');
  await all(podsOf(release), node);
} else if (suite === 'golden') await compareGolden(node, release, report);
else throw new Error(`no suite ${suite}`);
process.exit(0);
