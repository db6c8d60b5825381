import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedDevices } from './shared-devices.ts';

const signal = new AbortController().signal;

test('a pod that asks for a volume just as what an earlier run left of it is taken down keeps its place', async () => {
  for (let turns = 0; turns < 20; turns++) {
    const devices = new SharedDevices();
    let unstaged: () => void = () => undefined;
    const unstaging = new Promise<void>((resolve) => (unstaged = resolve));
    const removing = devices.removeUnused('d', 'h', () => unstaging, signal);
    unstaged();
    for (let i = 0; i < turns; i++) await Promise.resolve();
    const device = devices.use('d', 'h', 'pod');
    await removing;
    assert.equal(devices.use('d', 'h', 'other'), device, `asked ${turns} turns after the end`);
  }
});
