// Names, hosts file and resolver of a pod.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podRef, type Pod, type PodSpec } from '../core/pod.ts';
import { dnsEvents, MISSING_CLUSTER_DNS, parseResolvConf, podDns, resolvConfProblem } from './dns.ts';
import { podHostname, sandboxHostname } from './hostname.ts';
import { hostNetworkHostsFile, hostsFile } from './hosts-file.ts';

const podOf = (spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u', ...metadata },
  spec: { containers: [{ name: 'a' }], enableServiceLinks: true, ...spec },
});

describe('hostname', () => {
  const long = `${'a'.repeat(61)}.-b`;
  for (const [what, pod, hostname, domain] of [
    ['pod name', podOf(), 'p', ''],
    ['spec', podOf({ hostname: 'h' }), 'h', ''],
    ['subdomain', podOf({ hostname: 'h', subdomain: 's' }), 'h', 's.ns.svc.D'],
    ['override has no domain', podOf({ hostname: 'h', subdomain: 's', hostnameOverride: 'o.x' }), 'o.x', ''],
    ['an override is cut too', podOf({ hostnameOverride: 'o'.repeat(64) }), 'o'.repeat(63), ''],
    ['cut at 63, trailing separators dropped', podOf({}, { name: long }), 'a'.repeat(61), ''],
  ] as const)
    it(what, () => assert.deepEqual(podHostname(pod, 'D'), { hostname, domain }));
  it('full name only when asked for', () => {
    assert.equal(sandboxHostname(podOf({ subdomain: 's' }), 'D'), 'p');
    assert.equal(sandboxHostname(podOf({ subdomain: 's', setHostnameAsFQDN: true }), 'D'), 'p.s.ns.svc.D');
  });
  it('full name too long', () =>
    assert.throws(() => sandboxHostname(podOf({ subdomain: 's'.repeat(60), setHostnameAsFQDN: true }), 'D'), /FQDN/));
});

describe('hosts file', () => {
  it('two addresses', () => {
    const text = hostsFile(podOf(), ['10.0.0.1', 'fd00::1'], 'D');
    assert.ok(text.startsWith('# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n'));
    assert.ok(text.endsWith('fe00::2\tip6-allrouters\n10.0.0.1\tp\nfd00::1\tp\n'));
  });
  it('host network', () =>
    assert.equal(
      hostNetworkHostsFile(podOf({ hostAliases: [{ ip: '1.2.3.4', hostnames: ['a', 'b'] }] }), 'X\n'),
      '# Kubernetes-managed hosts file (host network).\nX\n\n# Entries added by HostAliases.\n1.2.3.4\ta\tb\n',
    ));
});

describe('dns', () => {
  const node = {
    clusterDns: ['10.96.0.10'],
    clusterDomain: 'D',
    hostResolvConf: 'nameserver 1.1.1.1\nsearch old\nsearch h1. . D\noptions a b a\n',
    nodeIps: ['192.0.2.1'],
  };
  const cluster = ['ns.svc.D', 'svc.D', 'D', 'h1'];
  for (const [what, pod, want] of [
    ['cluster first', podOf(), { servers: ['10.96.0.10'], searches: cluster, options: ['ndots:5'] }],
    [
      'unknown policy is cluster first',
      podOf({ dnsPolicy: 'What' }),
      { servers: ['10.96.0.10'], searches: cluster, options: ['ndots:5'] },
    ],
    ['default', podOf({ dnsPolicy: 'Default' }), { servers: ['1.1.1.1'], searches: ['h1', 'D'], options: ['a', 'b'] }],
    [
      'cluster first on the host network',
      podOf({ hostNetwork: true }),
      { servers: ['1.1.1.1'], searches: ['h1', 'D'], options: ['a', 'b'] },
    ],
    [
      'cluster first with host network',
      podOf({ hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' }),
      { servers: ['10.96.0.10'], searches: cluster, options: ['ndots:5'] },
    ],
    ['none', podOf({ dnsPolicy: 'None' }), { servers: [], searches: [], options: [] }],
    [
      'own config is added, options override by name',
      podOf({
        dnsConfig: {
          nameservers: ['9.9.9.9', '10.96.0.10'],
          searches: ['x', 'D'],
          options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
        },
      }),
      { servers: ['10.96.0.10', '9.9.9.9'], searches: [...cluster, 'x'], options: ['ndots:2', 'edns0'] },
    ],
  ] as const)
    it(what, () => assert.deepEqual(podDns(pod, node), { config: want, warnings: [] }));

  it('no cluster DNS: the node', () => {
    const dns = podDns(podOf(), { ...node, clusterDns: [] });
    assert.deepEqual(dns.config.servers, ['1.1.1.1']);
    assert.deepEqual(dns.warnings, [{ reason: 'MissingClusterDNS', message: MISSING_CLUSTER_DNS }]);
    assert.deepEqual(
      dns.warnings.flatMap((warning) => dnsEvents(podOf(), warning)),
      [
        { about: 'node', message: MISSING_CLUSTER_DNS },
        { about: 'pod', message: `pod: "${podRef(podOf())}". ${MISSING_CLUSTER_DNS}` },
      ],
    );
  });
  it('no resolver file: nothing resolves', () =>
    assert.deepEqual(
      podDns(podOf({ dnsPolicy: 'Default' }), { ...node, hostResolvConf: undefined, nodeIps: ['fd00::1'] }).config,
      { servers: ['::1'], searches: ['.'], options: [] },
    ));
  it('no cluster domain: only the node searches', () =>
    assert.deepEqual(podDns(podOf(), { ...node, clusterDomain: '' }).config.searches, ['h1', 'D']));
  it('a resolver file with more than a pod can take is told of', () => {
    const of = (searches: string[], domain = 'cluster.local'): string | undefined =>
      resolvConfProblem('/r', `search ${searches.join(' ')}\n`, domain);
    const many = Array.from({ length: 30 }, (_, i) => `s${i}`);
    assert.equal(of(many.slice(1)), undefined);
    assert.equal(of(many), "Resolv.conf file '/r' contains search line consisting of more than 29 domains!");
    assert.equal(of(many, ''), undefined);
    assert.equal(
      of(['x'.repeat(254)]),
      'Resolv.conf file "/r" contains a search path which length is more than allowed 253 chars!',
    );
    assert.equal(
      of(Array.from({ length: 9 }, () => 'x'.repeat(250))),
      "Resolv.conf file '/r' contains search line which length is more than allowed 2048 chars!",
    );
  });
  it('too many servers', () => {
    const dns = podDns(podOf({ dnsConfig: { nameservers: ['a', 'b', 'c'] } }), node);
    assert.deepEqual(dns.config.servers, ['10.96.0.10', 'a', 'b']);
    assert.equal(
      dns.warnings[0]?.message,
      'Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 10.96.0.10 a b',
    );
  });
  it('too many, too long, too much to search', () => {
    const of = (searches: string[]): number =>
      podDns(podOf({ dnsPolicy: 'None', dnsConfig: { searches } }), node).config.searches.length;
    assert.equal(of(Array.from({ length: 40 }, (_, i) => `s${i}`)), 32);
    assert.equal(of(['x'.repeat(254), 'ok']), 1);
    assert.equal(of(Array.from({ length: 20 }, (_, i) => `${i}`.padEnd(200, 'x'))), 10);
  });
  it('comments and blank lines', () =>
    assert.deepEqual(parseResolvConf('# x\n\n; y\nnameserver 1.1.1.1 # z\nnameserver\n').servers, ['1.1.1.1']));
  it('of an option that is given twice the last counts', () =>
    assert.deepEqual(parseResolvConf('options ndots:1 rotate\noptions ndots:3\n').options, ['ndots:3', 'rotate']));
});
