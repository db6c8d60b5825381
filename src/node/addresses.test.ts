import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  defaultAddress,
  defaultDevices4,
  defaultDevices6,
  nodeAddresses,
  parseNodeIps,
  type HostNetwork,
} from './addresses.ts';

const network: HostNetwork = {
  local: ['127.0.0.1', '10.0.0.5', 'fd00::5', 'fe80::1', '10.0.0.6'],
  resolved: [],
  defaultRoute: { 4: '10.0.0.5', 6: 'fd00::5' },
};
const show = (
  nodeIps: readonly string[],
  more: Partial<HostNetwork> = {},
  hostname = 'n1',
  externalCloud = false,
): string =>
  nodeAddresses({ hostname, nodeIps, externalCloud }, { ...network, ...more }, [])
    .map((a) => `${a.type}=${a.address}`)
    .join(' ');

describe('nodeAddresses', () => {
  const rows: [string, string, string][] = [
    ['default route', show([]), 'InternalIP=10.0.0.5 Hostname=n1'],
    ['node-ip', show(['10.0.0.6']), 'InternalIP=10.0.0.6 Hostname=n1'],
    ['dual stack', show(['10.0.0.6', 'fd00::5']), 'InternalIP=10.0.0.6 InternalIP=fd00::5 Hostname=n1'],
    [':: prefers IPv6', show(['::']), 'InternalIP=fd00::5 Hostname=n1'],
    ['hostname is an address', show([], {}, '10.9.9.9'), 'InternalIP=10.9.9.9 Hostname=10.9.9.9'],
    [
      'resolved name wins over the route',
      show([], { resolved: ['fd00::5', '10.0.0.6'] }),
      'InternalIP=10.0.0.6 Hostname=n1',
    ],
    ['loopback is no node address', show([], { resolved: ['127.0.0.1'] }), 'InternalIP=10.0.0.5 Hostname=n1'],
    ['other family if nothing else', show([], { resolved: ['fd00::5'] }), 'InternalIP=fd00::5 Hostname=n1'],
    ['external cloud without node-ip', show([], {}, 'n1', true), 'Hostname=n1'],
    ['external cloud with node-ip', show(['10.0.0.6'], {}, 'n1', true), 'InternalIP=10.0.0.6 Hostname=n1'],
  ];
  for (const [name, got, wanted] of rows) it(name, () => assert.equal(got, wanted));

  it('external cloud keeps what the provider wrote', () => {
    const existing = [{ type: 'ExternalIP', address: '1.1.1.1' }];
    const options = { hostname: 'n1', nodeIps: [], externalCloud: true };
    assert.deepEqual(nodeAddresses(options, network, existing), existing);
  });

  it('refuses a node-ip this machine does not have', () => {
    assert.throws(() => show(['10.7.7.7']), {
      message: `failed to validate nodeIP: node IP: "10.7.7.7" not found in the host's network interfaces`,
    });
    assert.throws(() => show(['10.0.0.5', 'fd00::9']), /failed to validate secondaryNodeIP: node IP: "fd00::9"/);
    for (const ip of ['127.0.0.1', 'fe80::1', '224.0.0.1'])
      assert.throws(() => show([ip]), /failed to validate nodeIP/);
  });

  it('says so when there is no address at all', () => {
    assert.throws(() => show([], { defaultRoute: {} }), /can't get ip address of node n1/);
  });
});

describe('addresses no node can have', () => {
  for (const ip of ['127.0.0.1', '224.0.0.1', '169.254.1.1', '::1', 'fe80::1', '9.9.9.9', 'x'])
    it(ip, () => {
      const seen = { ...network, local: ['127.0.0.1', 'fe80::1'], resolved: [ip], defaultRoute: {} };
      assert.throws(
        () => nodeAddresses({ hostname: 'h', nodeIps: [], externalCloud: false }, seen as never, []),
        /can't get ip address/,
      );
    });
});

describe('parseNodeIps', () => {
  it('takes one, or a dual-stack pair, and ignores garbage', () => {
    assert.deepEqual(parseNodeIps(''), []);
    assert.deepEqual(parseNodeIps('10.0.0.1, fd00::1'), ['10.0.0.1', 'fd00::1']);
    assert.deepEqual(parseNodeIps('x,10.0.0.1'), ['10.0.0.1']);
    assert.deepEqual(parseNodeIps('FD00:0:0:0:0::1'), ['fd00::1'], 'as the interfaces show it');
    assert.throws(() => parseNodeIps('10.0.0.1,10.0.0.2'), /bad --node-ip "10.0.0.1,10.0.0.2"/);
    assert.throws(() => parseNodeIps('0.0.0.0,fd00::1'), /dual-stack/);
  });
});

describe('default routes', () => {
  it('are none in empty tables', () => {
    assert.deepEqual(defaultDevices4(''), []);
    assert.deepEqual(defaultDevices6(''), []);
  });

  it('reads the kernel’s tables', () => {
    const v4 =
      'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n' +
      'cni0\t0000590A\t00000000\t0001\t0\t0\t0\t0000FFFF\neth0\t00000000\t0100590A\t0003\t0\t0\t0\t00000000\n' +
      'tun0\t00000000\t0100590A\t0003\t0\t0\t0\t00000080\n';
    assert.deepEqual(defaultDevices4(v4), ['eth0', 'tun0']);
    const zero = '0'.repeat(32);
    const v6 = `${zero} 00 ${zero} 00 ${zero} ffffffff 1 0 200200 lo\n${zero} 00 ${zero} 00 ${zero} 1 1 0 3 wg0\n${zero} 00 ${zero} 00 fe80 1 1 0 3 eth1\n`;
    assert.deepEqual(defaultDevices6(v6), ['eth1'], 'those with a gateway');
  });

  const eth = { device: 'eth0', address: '10.0.0.5' };
  const far = { device: 'eth1', address: '10.0.1.5' };
  const plain = { device: 'lo', address: '127.0.0.1' };
  const own = { device: 'lo', address: '192.0.2.7' };
  const linkLocal = { device: 'eth0', address: '169.254.3.3' };
  const found: readonly [string, readonly string[], readonly (typeof eth)[], string | undefined][] = [
    ['the device with the route', ['eth0'], [plain, own, far, eth], '10.0.0.5'],
    ['the next device when the first has none', ['eth0', 'eth1'], [plain, linkLocal, far], '10.0.1.5'],
    [
      'the loopback device when the others have link-local addresses only',
      ['eth0'],
      [plain, own, linkLocal],
      '192.0.2.7',
    ],
    ['nowhere without a default route', [], [plain, own, eth], undefined],
    ['nowhere when nothing is usable', ['eth0'], [plain, linkLocal], undefined],
  ];
  for (const [name, devices, interfaces, address] of found)
    it(`the address is on ${name}`, () => assert.equal(defaultAddress(devices, interfaces, 4), address));
});
