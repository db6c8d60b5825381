// Drivers are real programs here.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { ChildCommands } from '../../host/mounts/commands.ts';
import { systemClock } from '../../lib/clock.ts';
import { FlexDrivers } from './flex-drivers.ts';

const { signal } = new AbortController();
let dir: string;
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), 'flex-drivers-'))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A driver that keeps a list of what it is asked. */
function install(name: string, body: string): void {
  const [directory, program] = [join(dir, name.replace('/', '~')), name.split('/').at(-1) ?? ''];
  mkdirSync(directory, { recursive: true });
  rmSync(join(directory, program), { force: true });
  writeFileSync(join(directory, program), `#!/bin/sh\necho "$@" >>${dir}/asked\n${body}\n`);
  chmodSync(join(directory, program), 0o755);
}
const asked = (): string[] => readFileSync(join(dir, 'asked'), 'utf8').trimEnd().split('\n');
const open = (timeoutMs = 20_000): FlexDrivers => {
  const commands = new ChildCommands({ clock: systemClock }, { timeoutMs });
  return new FlexDrivers({ quick: commands, commands }, { dir });
};
const OK = `echo '{"status":"Success","capabilities":{"attach":false}}'`;

test('a driver is asked once what it can do, also by many at once, and again when it was replaced', async () => {
  install('example.com/x', OK);
  const drivers = open();
  assert.equal(drivers.known('example.com/x'), undefined);
  const all = await Promise.all([1, 2, 3].map(() => drivers.capabilities('example.com/x', signal)));
  assert.deepEqual(
    all.map(({ attach }) => attach),
    [false, false, false],
  );
  await drivers.capabilities('example.com/x', signal);
  assert.deepEqual(asked(), ['init']);
  install('example.com/x', `echo '{"status":"Success"}'`);
  assert.equal((await drivers.capabilities('example.com/x', signal)).attach, true);
  assert.equal(drivers.known('example.com/x')?.attach, true);
  assert.deepEqual(asked(), ['init', 'init']);
});

test('what a driver leaves to us is not asked again', async () => {
  install('plain', `case $1 in init) ${OK};; *) echo '{"status":"Not supported"}'; exit 1;; esac`);
  const drivers = open();
  assert.equal(await drivers.call('plain', 'mount', ['/a'], signal), undefined);
  assert.equal(await drivers.call('plain', 'mount', ['/b'], signal), undefined);
  assert.equal(await drivers.call('plain', 'unmount', ['/a'], signal), undefined);
  assert.deepEqual(asked(), ['init', 'mount /a', 'unmount /a']);
});

test('a driver sees no environment of ours', async () => {
  install('env', `case $1 in init) ${OK};; *) echo "{\\"status\\":\\"Success\\",\\"device\\":\\"$HOME\\"}";; esac`);
  assert.notEqual(process.env['HOME'] ?? '', '');
  assert.equal((await open().call('env', 'waitforattach', [], signal))?.device, '');
});

test('why a driver cannot be used', async () => {
  const broken = `no volume plugin matched: init command failed`;
  install('garbage', 'echo Hello');
  install('refuses', `echo '{"status":"Failure","message":"no license"}'; exit 1`);
  install('cannot', `echo '{"status":"Not supported"}'`);
  install('sleeps', 'sleep 60');
  mkdirSync(join(dir, 'empty'));
  mkdirSync(join(dir, 'noexec'));
  writeFileSync(join(dir, 'noexec/noexec'), '#!/bin/sh\n');
  const rows: readonly [string, string][] = [
    ['garbage', `${broken}: the answer is not JSON: "Hello"`],
    ['refuses', `${broken}, status: Failure, reason: no license`],
    ['cannot', 'no volume plugin matched: init: Not supported'],
    ['sleeps', `${broken}: ${dir}/sleeps/sleeps did not end within 400ms`],
    ['noexec', `${broken}: cannot run ${dir}/noexec/noexec: spawn ${dir}/noexec/noexec EACCES`],
    ['empty', `no volume plugin matched: there is no driver "empty" in ${dir}`],
  ];
  const drivers = open(400);
  for (const [name, message] of rows)
    await assert.rejects(drivers.capabilities(name, signal), { kind: 'unavailable', message }, name);
});

test('names that are no directory of a driver', async () => {
  install('.hidden', OK);
  install('a~b', OK);
  const names = ['', '.', '..', '../x', 'x/..', 'x/', '/x', 'a//b', '.hidden', 'a~b', 'x\0y', 'x'.repeat(300)];
  for (const name of names) await assert.rejects(open().capabilities(name, signal), /there is no driver/, name);
});

test('a driver that goes is missed with the next call, one that comes back is asked again', async () => {
  install('v/d', `case $1 in init) ${OK};; *) echo '{"status":"Success"}';; esac`);
  const drivers = open();
  assert.notEqual(await drivers.call('v/d', 'unmount', ['/x'], signal), undefined);
  rmSync(join(dir, 'v~d'), { recursive: true });
  await assert.rejects(drivers.call('v/d', 'unmount', ['/x'], signal), /there is no driver "v\/d"/);
  assert.equal(drivers.known('v/d'), undefined);
  install('v/d', `case $1 in init) ${OK};; *) echo '{"status":"Success"}';; esac`);
  assert.notEqual(await drivers.call('v/d', 'unmount', ['/x'], signal), undefined);
});

test('a call that fails says why, one that hangs is ended', async () => {
  install(
    'd',
    `case $1 in init) ${OK};; mount) echo '{"status":"Failure","message":"busy"}'; exit 1;; *) sleep 60;; esac`,
  );
  await assert.rejects(open().call('d', 'mount', [], signal), {
    message: 'mount command failed, status: Failure, reason: busy',
  });
  await assert.rejects(open(400).call('d', 'unmount', ['/x'], signal), {
    kind: 'deadline',
    message: `unmount command failed: ${dir}/d/d did not end within 400ms`,
  });
});
