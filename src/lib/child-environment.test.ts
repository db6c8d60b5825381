import assert from 'node:assert/strict';
import { it } from 'node:test';
import { pluginEnvironment, toolEnvironment } from './child-environment.ts';

const own = {
  PATH: '/bin',
  NOTIFY_SOCKET: '/run/notify',
  WATCHDOG_USEC: '1',
  NODE_OPTIONS: '--inspect',
  AWS_REGION: 'here',
  DBUS_SYSTEM_BUS_ADDRESS: 'unix:path=/x',
  SECRET: 's',
};

it('tools get a path and a language, and what they are said to need', () => {
  assert.deepEqual(toolEnvironment([], own), { PATH: '/bin', LC_ALL: 'C' });
  assert.deepEqual(toolEnvironment(['DBUS_SYSTEM_BUS_ADDRESS', 'NONE'], own), {
    PATH: '/bin',
    LC_ALL: 'C',
    DBUS_SYSTEM_BUS_ADDRESS: 'unix:path=/x',
  });
  assert.match(toolEnvironment([], {})['PATH'] ?? '', /\/usr\/bin/);
});

it('plugins get all but what is between systemd, Node and us', () => {
  assert.deepEqual(Object.keys(pluginEnvironment(own)), ['PATH', 'AWS_REGION', 'DBUS_SYSTEM_BUS_ADDRESS', 'SECRET']);
});
