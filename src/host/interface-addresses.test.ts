import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { interfaceAddresses, parseInterfaceAddresses } from './interface-addresses.ts';

test('the kernel tells at least what Node tells', () => {
  const toldByNode = (): readonly string[] =>
    Object.entries(networkInterfaces()).flatMap(([device, list = []]) =>
      list.map(({ address }) => `${device} ${address}`),
    );
  // Interfaces come and go: what counts was there before and after.
  const before = toldByNode();
  const ours = new Set(interfaceAddresses().map(({ device, address }) => `${device} ${address}`));
  const after = new Set(toldByNode());
  const stayed = before.filter((address) => after.has(address));
  assert.ok(stayed.length > 0);
  for (const address of stayed) assert.ok(ours.has(address), address);
});

test('addresses on a bridge without ports and on a link that is down are there', () => {
  const [up, down] = [`ktb${process.pid}`, `ktd${process.pid}`];
  const ip = (...args: string[]): void => void execFileSync('ip', args);
  try {
    for (const name of [up, down]) ip('link', 'add', name, 'type', 'bridge');
    ip('addr', 'add', '192.0.2.77/32', 'dev', up);
    ip('addr', 'add', '192.0.2.78/32', 'dev', down);
    ip('link', 'set', up, 'up');
    const found = interfaceAddresses();
    assert.ok(found.some((a) => a.device === up && a.address === '192.0.2.77'));
    assert.ok(found.some((a) => a.device === down && a.address === '192.0.2.78'));
  } finally {
    for (const name of [up, down]) ip('link', 'del', name);
  }
});

test('damaged answers give what could be read, never an exception', () => {
  const header = Buffer.alloc(16);
  header.writeUInt32LE(99, 0);
  assert.deepEqual(parseInterfaceAddresses([header], [header, Buffer.alloc(3), Buffer.alloc(16)]), []);
});
