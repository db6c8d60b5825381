import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { NetworkRules } from './network-rules.ts';

/** Chains and rules in memory, answering as iptables does. */
class FakeTables {
  readonly chains = new Set<string>();
  readonly rules: string[] = [];
  readonly changes: string[] = [];
  broken = false;

  run = (program: string, args: readonly string[]): Promise<void> => {
    if (this.broken) return Promise.reject(new Error('no such program'));
    const [, , , table = '', verb = '', chain = '', ...rest] = args;
    const key = `${program} ${table} ${chain}`;
    const rule = `${key} ${rest.join(' ')}`;
    if (verb === '-S') return this.chains.has(key) ? Promise.resolve() : Promise.reject(new Error('no chain'));
    if (verb === '-C') return this.rules.includes(rule) ? Promise.resolve() : Promise.reject(new Error('no rule'));
    this.changes.push(`${verb} ${rule.trim()}`);
    if (verb === '-N') this.chains.add(key);
    else if (verb === '-I') this.rules.unshift(rule);
    else this.rules.push(rule);
    return Promise.resolve();
  };
}
const signal = new AbortController().signal;
const open = (tables: FakeTables): NetworkRules =>
  new NetworkRules({ clock: new ManualClock(), log: silentLogger, run: tables.run });

describe('NetworkRules', () => {
  it('makes the chains of upstream once', async () => {
    const tables = new FakeTables();
    const rules = open(tables);
    await rules.sync(signal);
    assert.deepEqual(tables.changes.slice(0, 8), [
      '-N iptables mangle KUBE-IPTABLES-HINT',
      '-N iptables filter KUBE-FIREWALL',
      '-A iptables filter KUBE-FIREWALL -m comment --comment block incoming localnet connections --dst 127.0.0.0/8 ! --src 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
      '-I iptables filter OUTPUT -j KUBE-FIREWALL',
      '-I iptables filter INPUT -j KUBE-FIREWALL',
      '-N iptables mangle KUBE-KUBELET-CANARY',
      '-N iptables nat KUBE-KUBELET-CANARY',
      '-N iptables filter KUBE-KUBELET-CANARY',
    ]);
    assert.ok(!tables.changes.some((c) => c.includes('ip6tables') && c.includes('FIREWALL')));
    const count = tables.changes.length;
    await rules.sync(signal);
    assert.equal(tables.changes.length, count);
  });

  it('looks at every rule when it starts, whatever an earlier process has left', async () => {
    const tables = new FakeTables();
    await open(tables).sync(signal);
    tables.rules.length = 0;
    tables.changes.length = 0;
    await open(tables).sync(signal);
    assert.deepEqual(
      tables.changes.map((c) => c.slice(0, 31)),
      ['-A iptables filter KUBE-FIREWAL', '-I iptables filter OUTPUT -j KU', '-I iptables filter INPUT -j KUB'],
    );
  });

  it('goes on after a failure to make again what it made before', async () => {
    const tables = new FakeTables();
    const rules = open(tables);
    await rules.sync(signal);
    tables.chains.clear();
    tables.broken = true;
    await rules.sync(signal);
    tables.broken = false;
    await rules.sync(signal);
    assert.ok(tables.chains.has('iptables mangle KUBE-KUBELET-CANARY'));
  });

  it('makes them again after a flush, and only what is missing', async () => {
    const tables = new FakeTables();
    const rules = open(tables);
    await rules.sync(signal);
    tables.chains.delete('iptables mangle KUBE-KUBELET-CANARY');
    tables.rules.length = 0;
    tables.changes.length = 0;
    await rules.sync(signal);
    assert.deepEqual(
      tables.changes.map((c) => c.slice(0, 35)),
      [
        '-A iptables filter KUBE-FIREWALL -m',
        '-I iptables filter OUTPUT -j KUBE-F',
        '-I iptables filter INPUT -j KUBE-FI',
        '-N iptables mangle KUBE-KUBELET-CAN',
      ],
    );
  });

  it('a machine without iptables is left alone', async () => {
    const tables = new FakeTables();
    tables.broken = true;
    const rules = open(tables);
    await rules.sync(signal);
    tables.broken = false;
    await rules.sync(signal);
    assert.deepEqual(tables.changes, []);
  });
});
