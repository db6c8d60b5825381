// The D-Bus client, systemd's units and logind against a real dbus-daemon: what it answers, passes on, and how it fails.
// runs: gate
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { systemBus, type SystemBus } from '../../src/host/systemd/system-bus.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { Bus } from '../../src/lib/dbus/bus.ts';
import { DBUS, type Connection } from '../../src/lib/dbus/connection.ts';
import { Variant } from '../../src/lib/dbus/values.ts';
import { isFault, type Fault } from '../../src/lib/errors.ts';
import { Logind } from '../../src/shutdown/logind.ts';
import { FakeLogind, FakeSystemd } from '../fakes/fake-systemd.ts';
import { MessageBus, noMessageBus } from '../harness/message-bus.ts';
import { until, untilSeen } from '../harness/until.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const { signal } = new AbortController();
const PEER = { destination: 'org.example.Peer', path: '/peer', interface: 'org.example.Peer' };
const fault =
  (...kinds: Fault[]) =>
  (err: unknown): boolean =>
    isFault(err, ...kinds);

describe('a message bus', { skip: noMessageBus }, () => {
  const daemon = new MessageBus();
  let peer: Connection;
  let bus: Bus;
  let dir: string;

  before(async () => {
    dir = temporaryFolder('kts-peer-');
    writeFileSync(join(dir, 'file'), 'passed along');
    await daemon.start();
    bus = new Bus(systemClock, { address: daemon.address });
  });
  const servePeer = async (): Promise<void> => {
    peer = await daemon.serve('org.example.Peer', (call) => {
      if (call.member === 'Echo') return { signature: call.signature ?? '', body: call.body };
      if (call.member === 'Name') return { signature: 's', body: [call.sender ?? ''] };
      if (call.member === 'File') {
        const fd = openSync(join(dir, 'file'), 'r');
        setImmediate(() => closeSync(fd));
        return { signature: 'h', body: [0], descriptors: [fd] };
      }
      return new Promise(() => undefined);
    });
  };
  before(servePeer);
  after(async () => {
    await bus?.close();
    await daemon.close();
  });

  it('answers with whatever types were sent', async () => {
    const body = [
      'text',
      18446744073709551615n,
      [['CPUWeight', new Variant('t', 39n)]],
      [[-1, [1.5, Uint8Array.of(1, 2)]]],
    ];
    const reply = await bus.call({ ...PEER, member: 'Echo', signature: 'sta(sv)a(i(day))', body }, signal);
    assert.deepEqual(reply.body, body);
  });

  it('may ask any connection whether it is there', async () => {
    const ping = { ...PEER, interface: 'org.freedesktop.DBus.Peer', member: 'Ping' };
    assert.deepEqual((await bus.call(ping, signal)).body, []);
  });

  it('carries messages larger than any buffer, and many calls at once', async () => {
    const large = 'x'.repeat(3_000_000);
    const reply = await bus.call({ ...PEER, member: 'Echo', signature: 's', body: [large] }, signal);
    assert.equal(reply.body[0], large);
    const numbers = Array.from({ length: 500 }, (_, i) => i);
    const answers = await Promise.all(
      numbers.map((n) => bus.call({ ...PEER, member: 'Echo', signature: 'u', body: [n] }, signal)),
    );
    assert.deepEqual(
      answers.map((one) => one.body[0]),
      numbers,
    );
  });

  it('says by kind what went wrong', async () => {
    const ask = (call: object): Promise<unknown> => bus.call({ ...DBUS, member: 'GetId', ...call }, signal);
    await assert.rejects(ask({ member: 'NoSuchMethod' }), fault('unimplemented'));
    await assert.rejects(ask({ destination: 'org.example.Nobody' }), fault('unavailable'));
    await assert.rejects(ask({ member: 'GetNameOwner', signature: 'u', body: [1] }), fault('invalid'));
    await assert.rejects(bus.call({ ...PEER, member: 'Never' }, signal, 50), fault('deadline'));
    const stop = new AbortController();
    const waiting = bus.call({ ...PEER, member: 'Never' }, stop.signal);
    stop.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
  });

  it('brings signals of the sender asked for, and of nobody else', async () => {
    const heard: unknown[] = [];
    const stop = new AbortController();
    const started = Promise.withResolvers<void>();
    const rule = { sender: PEER.destination, path: PEER.path, interface: PEER.interface, member: 'Changed' };
    const watching = bus.watch(rule, ({ body }) => heard.push(body[0]), stop.signal, started.resolve);
    await started.promise;
    const stranger = await daemon.serve('org.example.Stranger', () => ({}));
    const changed = { path: PEER.path, interface: PEER.interface, member: 'Changed', signature: 's' };
    const { name } = await bus.connection(signal);
    stranger.emit({ ...changed, destination: name, body: ['forged'] });
    peer.emit({ ...changed, member: 'Other', body: ['another member'] });
    peer.emit({ ...changed, body: ['real'] });
    await untilSeen(
      'the signal is heard',
      () => heard,
      (seen) => seen.length > 0,
    );
    // What the stranger sent was on its way before this answer.
    await stranger.call({ ...DBUS, member: 'GetId' }, 30_000, signal);
    await bus.call({ ...DBUS, member: 'GetId' }, signal);
    assert.deepEqual(heard, ['real']);
    stop.abort();
    await watching;
  });

  it('tells a watcher that the sender left', async () => {
    const guest = await daemon.serve('org.example.Guest', () => ({}));
    const rule = { sender: 'org.example.Guest', path: '/', interface: 'a.B', member: 'C' };
    const started = Promise.withResolvers<void>();
    const watching = bus.watch(rule, () => undefined, signal, started.resolve);
    await started.promise;
    guest.close();
    await assert.rejects(watching, /left the bus/);
    await assert.rejects(
      bus.watch(rule, () => undefined, signal),
      fault('unavailable'),
    );
  });

  it('passes an open file', async () => {
    const close = await systemBus(systemClock, daemon.address).callForFile({ ...PEER, member: 'File' }, signal);
    close();
    close();
    await assert.rejects(
      systemBus(systemClock, daemon.address).callForFile({ ...PEER, member: 'Echo' }, signal),
      /brought no open file/,
    );
    // To a connection that takes none the bus does not deliver the answer.
    await assert.rejects(bus.call({ ...PEER, member: 'File' }, signal, 200), fault('deadline'));
  });

  it('frozen, it costs a call its deadline and nothing else', async () => {
    await bus.call({ ...DBUS, member: 'GetId' }, signal);
    daemon.freeze();
    try {
      await assert.rejects(bus.call({ ...DBUS, member: 'GetId' }, signal, 200), fault('deadline'));
      const stranger = new Bus(systemClock, { address: daemon.address, connectMs: 200 });
      await assert.rejects(stranger.call({ ...DBUS, member: 'GetId' }, signal), fault('deadline'));
      const huge = 'x'.repeat(3_000_000);
      const flood = Array.from({ length: 4 }, () =>
        bus.call({ ...PEER, member: 'Echo', signature: 's', body: [huge] }, signal, 100),
      );
      for (const one of await Promise.allSettled(flood)) assert.ok(one.status === 'rejected' && isFault(one.reason));
    } finally {
      daemon.thaw();
    }
    await bus.call({ ...DBUS, member: 'GetId' }, signal, 30_000);
  });

  it('killed, it fails what is under way; the next call finds the new one', async () => {
    const waiting = bus.call({ ...PEER, member: 'Never' }, signal, 60_000);
    const watching = bus.watch(
      { sender: PEER.destination, path: '/', interface: 'a.B', member: 'C' },
      () => undefined,
      signal,
    );
    const failures = Promise.all([
      assert.rejects(waiting, fault('unavailable')),
      assert.rejects(watching, fault('unavailable')),
    ]);
    await bus.call({ ...DBUS, member: 'GetId' }, signal);
    await daemon.kill();
    await failures;
    await assert.rejects(bus.call({ ...DBUS, member: 'GetId' }, signal), fault('unavailable'));
    await daemon.start();
    await servePeer();
    const reply = await bus.call({ ...PEER, member: 'Echo', signature: 's', body: ['again'] }, signal, 30_000);
    assert.deepEqual(reply.body, ['again']);
  });

  const systemd = new FakeSystemd();
  describe('with systemd', () => {
    let machine: SystemBus;
    before(async () => {
      await systemd.open(daemon);
      machine = systemBus(systemClock, daemon.address);
    });
    after(() => machine.bus.close());
    beforeEach(() => void (systemd.asked.length = 0));

    it('a unit is started when its job is done', async () => {
      await machine.units.startTransient('a.slice', [['MemoryMax', new Variant('t', 1n)]], signal);
      assert.deepEqual(systemd.asked, [
        ['Subscribe'],
        ['StartTransientUnit', 'a.slice', 'replace', [['MemoryMax', new Variant('t', 1n)]], []],
      ]);
      await machine.units.setProperties('a.slice', [['TasksMax', new Variant('t', 2n)]], signal);
      await machine.units.stop('a.slice', signal);
      assert.deepEqual(systemd.asked.slice(2), [
        ['SetUnitProperties', 'a.slice', true, [['TasksMax', new Variant('t', 2n)]]],
        ['StopUnit', 'a.slice', 'replace'],
      ]);
    });

    it('systemd tells its version', async () => {
      for (const [text, version] of [
        ['252.39-1~deb12u1', 252],
        ['v239 (239-82.el8)', 239],
        ['unknown', undefined],
      ] as const) {
        systemd.version = text;
        assert.equal(await machine.units.version(signal), version);
      }
    });

    it('many at once each get their own result', async () => {
      await Promise.all(Array.from({ length: 50 }, (_, i) => machine.units.start(`u${i}.slice`, signal)));
      assert.equal(systemd.units.size, 50);
      systemd.result = 'failed';
      await assert.rejects(machine.units.start('bad.slice', signal), /StartUnit bad.slice ended as failed/);
      systemd.result = 'done';
    });

    it('a job that never ends is given up with its caller', async () => {
      systemd.hang = true;
      const stop = new AbortController();
      const waiting = machine.units.start('hung.slice', stop.signal);
      const rejected = assert.rejects(waiting);
      await untilSeen(
        'systemd was asked',
        () => systemd.asked,
        (seen) => seen.length === 1,
      );
      stop.abort();
      await rejected;
      systemd.hang = false;
      await machine.units.start('next.slice', signal);
    });
  });

  describe('with logind', () => {
    let logind: FakeLogind;
    let machine: SystemBus;
    let client: Logind;
    before(async () => {
      logind = await new FakeLogind().open(daemon);
      machine = systemBus(systemClock, daemon.address);
      const { bus: own, units, callForFile } = machine;
      const killUnit = (unit: string, n: number, s: AbortSignal): Promise<void> => units.kill(unit, n, s);
      client = new Logind(
        { bus: own, callForFile, killUnit, clock: systemClock },
        { override: join(dir, 'logind.conf') },
      );
    });
    after(async () => {
      logind.close();
      await machine.bus.close();
    });

    it('the delay is raised', async () => {
      systemd.onReload = () => void (logind.maxDelaySeconds = 30);
      await client.allowDelay(30, signal);
      assert.match(readFileSync(join(dir, 'logind.conf'), 'utf8'), /InhibitDelayMaxSec=30/);
      await client.allowDelay(30, signal);
    });

    it('an inhibitor is held until it is released', async () => {
      const inhibitor = await client.inhibit(signal);
      assert.deepEqual(logind.asked.at(-1)?.slice(0, 3), ['Inhibit', 'shutdown', 'kubelet']);
      assert.equal(logind.inhibitors, 1);
      inhibitor.release();
      await untilSeen(
        'it is released',
        () => logind.inhibitors,
        (seen) => seen === 0,
      );
    });

    it('a shutdown is told once, also one announced before anybody listened', async () => {
      const told: boolean[] = [];
      const stop = new AbortController();
      logind.announce(true);
      const watching = client.watch((down) => told.push(down), stop.signal);
      await untilSeen(
        'the shutdown is told',
        () => told,
        (seen) => seen.length === 1,
      );
      logind.announce(true);
      logind.announce(false);
      await untilSeen(
        'it is called off',
        () => told,
        (seen) => seen.length === 2,
      );
      assert.deepEqual(told, [true, false]);
      stop.abort();
      await watching;
    });

    it('a shutdown that somebody else announces is told, too', async () => {
      const told: boolean[] = [];
      const stop = new AbortController();
      const watching = client.watch((down) => told.push(down), stop.signal);
      const stranger = await daemon.serve('org.example.Rehearsal', () => ({}));
      const signalled = {
        path: '/org/freedesktop/login1',
        interface: 'org.freedesktop.login1.Manager',
        member: 'PrepareForShutdown',
        signature: 'b',
      };
      // Until somebody listens a signal is lost.
      await until('it is told', () => {
        if (told.length === 0) stranger.emit({ ...signalled, body: [true] });
        return told.length > 0;
      });
      assert.deepEqual(told, [true]);
      stop.abort();
      await watching;
    });
  });
});
