import { strict as assert } from 'node:assert';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { Resolver } from 'node:dns/promises';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { silentLogger } from '../../lib/logger.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import type { ApiObject, Json } from '../api/objects.ts';
import type { Change, ObjectStore } from '../api/store.ts';
import { DnsServer } from './dns-server.ts';
import { CODES, encodeAnswer, questionOf, TYPES } from './dns-message.ts';
import { subsetsOf } from './endpoints.ts';
import { fixedRules, serviceRules } from './rules.ts';
import { ServiceProxy } from './service-proxy.ts';
import { isOurs, lookUp, type Names } from './zone.ts';
import { freePort } from '../../../test/harness/ports.ts';

const serviceOf = (name: string, spec: Json): ApiObject => ({
  kind: 'Service',
  apiVersion: 'v1',
  metadata: { name, namespace: 'shop' },
  spec,
});
const podOf = (name: string, ip: string, status: Json = {}, spec: Json = {}): ApiObject => ({
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name, namespace: 'shop', labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', ports: [{ name: 'http', containerPort: 8080 }] }], ...spec },
  status: { phase: 'Running', podIP: ip, ...status },
});
const sliceOf = (service: string, port: number, endpoints: readonly Json[], name = ''): ApiObject => ({
  kind: 'EndpointSlice',
  apiVersion: 'discovery.k8s.io/v1',
  metadata: { name: `${service}-x`, namespace: 'shop', labels: { 'kubernetes.io/service-name': service } },
  endpoints,
  ports: [{ name, port, protocol: 'TCP' }],
});
const endpoint = (ip: string, more: Json = {}): Json => ({ addresses: [ip], conditions: { ready: true }, ...more });

const SERVICES: readonly ApiObject[] = [
  serviceOf('web', { clusterIP: '10.96.0.20', ports: [{ name: 'http', port: 80, protocol: 'TCP' }] }),
  serviceOf('db', { clusterIP: 'None', ports: [{ port: 5432 }] }),
  serviceOf('out', { type: 'ExternalName', externalName: 'example.com' }),
];
const SLICES: readonly ApiObject[] = [
  sliceOf('web', 8080, [endpoint('10.1.0.2')], 'http'),
  sliceOf('db', 5432, [
    endpoint('10.1.0.3', { hostname: 'db-0' }),
    { addresses: ['10.1.0.4'], conditions: { ready: false }, hostname: 'db-1' },
  ]),
];
const NAMES: Names = {
  service: (namespace, name) => SERVICES.find((s) => namespace === 'shop' && s.metadata.name === name),
  slices: (_namespace, service) => SLICES.filter((s) => s.metadata.labels?.['kubernetes.io/service-name'] === service),
};

describe('names of the cluster', () => {
  const rows: readonly (readonly [string, keyof typeof TYPES, string])[] = [
    ['web.shop.svc.cluster.local', 'A', '10.96.0.20'],
    ['web.shop.svc.cluster.local', 'AAAA', ''],
    ['web.other.svc.cluster.local', 'A', 'none'],
    ['nobody.shop.svc.cluster.local', 'A', 'none'],
    ['shop.svc.cluster.local', 'A', ''],
    ['svc.cluster.local', 'A', ''],
    ['cluster.local', 'A', ''],
    ['example.cluster.local', 'A', 'none'],
    ['db.shop.svc.cluster.local', 'A', '10.1.0.3'],
    ['db-0.db.shop.svc.cluster.local', 'A', '10.1.0.3'],
    ['db-1.db.shop.svc.cluster.local', 'A', 'none'],
    ['db-0.db.shop.svc.cluster.local', 'AAAA', ''],
    ['_http._tcp.web.shop.svc.cluster.local', 'SRV', 'web.shop.svc.cluster.local:80'],
    ['_http._udp.web.shop.svc.cluster.local', 'SRV', 'none'],
    ['out.shop.svc.cluster.local', 'A', 'example.com'],
    ['10-1-0-2.shop.pod.cluster.local', 'A', '10.1.0.2'],
    ['web.shop.pod.cluster.local', 'A', 'none'],
  ];
  for (const [name, type, expected] of rows)
    it(`${name} ${type}`, () => {
      const found = lookUp(name, TYPES[type], NAMES);
      const text = found?.map((a) =>
        a.type === 'A' ? a.address : a.type === 'SRV' ? `${a.target}:${a.port}` : a.target,
      );
      assert.equal(text?.join(' ') ?? 'none', expected);
    });

  it('knows which names are its own', () => {
    for (const [name, ours] of [
      ['web.shop.svc.cluster.local', true],
      ['cluster.local', true],
      ['notcluster.local', false],
      ['example.com', false],
    ] as const)
      assert.equal(isOurs(name), ours, name);
  });
});

describe('DNS messages', () => {
  const query = (name: string): Buffer =>
    Buffer.concat([
      Buffer.from('123401000001000000000000', 'hex'),
      ...name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])),
      Buffer.from([0, 0, 1, 0, 1]),
    ]);
  it('are told apart from noise', () => {
    assert.deepEqual(questionOf(query('Web.shop')), { name: 'web.shop', type: 1, end: 26 });
    for (const noise of ['', '00', '1234010000020000', `${'12340100000100000000000040'}${'61'.repeat(64)}`])
      assert.equal(questionOf(Buffer.from(noise, 'hex')), undefined, noise);
    for (let length = 0; length < 26; length++)
      assert.equal(questionOf(query('Web.shop').subarray(0, length)), undefined, `cut after ${length}`);
  });

  it('say when they had to leave something out', () => {
    const asked = query('db.shop');
    const question = questionOf(asked);
    assert.ok(question);
    const many = Array.from({ length: 60 }, (_, i) => ({ type: 'A', address: `10.0.0.${i}` }) as const);
    const short = encodeAnswer(asked, question, CODES.ok, many, true);
    assert.ok(short.length <= 512);
    assert.equal((short[2] ?? 0) & 0x02, 0x02);
    const whole = encodeAnswer(asked, question, CODES.ok, many, false);
    assert.equal(whole.readUInt16BE(6), 60);
    assert.equal((whole[2] ?? 0) & 0x02, 0);
  });
});

describe('what is behind a service', () => {
  const service = serviceOf('web', { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 'http' }] });
  const said = (pods: readonly ApiObject[], its = service): string =>
    subsetsOf(its, pods)
      .map(
        ({ ports, pods: members }) =>
          `${members.map((p) => p.metadata.name).join()}:${ports.map((p) => p.port).join()}`,
      )
      .join(' ');
  it('is what its selector selects and what has an address', () => {
    assert.equal(said([podOf('a', '10.1.0.2'), podOf('b', '10.1.0.3')]), 'a,b:8080');
    assert.equal(said([podOf('a', '')]), '');
    assert.equal(said([podOf('a', '10.1.0.2', { phase: 'Succeeded' })]), '');
    assert.equal(said([{ ...podOf('a', '10.1.0.2'), metadata: { name: 'a', labels: { app: 'other' } } }]), '');
    assert.equal(said([podOf('a', '10.1.0.2')], serviceOf('web', { ports: [{ port: 80 }] })), '', 'no selector');
  });
  it('is told apart by what a named port means in it', () => {
    const other = { containers: [{ name: 'c', ports: [{ name: 'http', containerPort: 9090 }] }] };
    assert.equal(said([podOf('a', '10.1.0.2'), podOf('b', '10.1.0.3', {}, other)]), 'a:8080 b:9090');
    assert.equal(said([podOf('a', '10.1.0.2', {}, { containers: [{ name: 'c' }] })]), 'a:');
  });
});

describe('rules', () => {
  const network = { name: 'kds-1x2', bridge: 'kd1x2', subnet: '10.1.2.0/24' };
  const lines = (spec: Json, endpoints: readonly Json[]): string[] =>
    serviceRules(network, [serviceOf('web', spec)], [sliceOf('web', 8080, endpoints)])
      .split('\n')
      .filter((line) => line.startsWith('-A'))
      .map((line) => line.replace('-A KTS-kds-1x2 ', ''));
  const spec = { clusterIP: '10.96.0.20', ports: [{ port: 80 }] };
  it('choose among those that are ready', () => {
    assert.deepEqual(lines(spec, [endpoint('10.1.2.3')]), [
      '-d 10.96.0.20/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.1.2.3:8080',
    ]);
    const three = [endpoint('10.1.2.3'), endpoint('10.1.2.4', { conditions: { ready: false } }), endpoint('10.1.2.5')];
    assert.deepEqual(lines(spec, three), [
      '-d 10.96.0.20/32 -p tcp -m tcp --dport 80 -m statistic --mode random --probability 0.500000 -j DNAT --to-destination 10.1.2.3:8080',
      '-d 10.96.0.20/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.1.2.5:8080',
    ]);
    assert.deepEqual(lines(spec, []), []);
    assert.deepEqual(lines({ ...spec, clusterIP: 'None' }, three), []);
  });
  it('take node ports and external addresses too', () => {
    assert.deepEqual(
      lines({ ...spec, externalIPs: ['192.0.2.9'], ports: [{ port: 80, nodePort: 30080 }] }, [endpoint('10.1.2.3')]),
      ['-d 10.96.0.20/32', '-d 192.0.2.9/32']
        .map((to) => `${to} -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.1.2.3:8080`)
        .concat('-m addrtype --dst-type LOCAL -p tcp -m tcp --dport 30080 -j DNAT --to-destination 10.1.2.3:8080'),
    );
  });
  it('are none for what iptables would refuse, which would keep the others away', () => {
    const good = '-d 10.96.0.20/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.1.2.3:8080';
    const one = [endpoint('10.1.2.3')];
    assert.deepEqual(lines({ ...spec, externalIPs: ['2001:db8::1', 'x; y', 'a\n-F'] }, one), [good]);
    for (const clusterIP of ['10.96.0.300', 'fd00::1', '1.2.3.4\n-F'])
      assert.deepEqual(lines({ ...spec, clusterIP }, one), [], clusterIP);
    for (const port of [{}, { port: 0 }, { port: 70_000 }, { port: 1.5 }, { port: 80, protocol: 'FOO' }])
      assert.deepEqual(lines({ ...spec, ports: [port] }, one), [], JSON.stringify(port));
    assert.deepEqual(lines({ ...spec, ports: [{ port: 80, nodePort: 70_000 }] }, one), [good]);
    assert.deepEqual(
      lines(
        spec,
        ['::1', 'pod', '10.1.2.3'].map((ip) => endpoint(ip)),
      ),
      [good],
    );
    const odd = serviceRules(network, [serviceOf('web', spec)], [sliceOf('web', 0, one), sliceOf('web', -1, one)]);
    assert.ok(!odd.includes('DNAT'), odd);
  });

  it('all carry the name of the network, so that they are found again', () => {
    for (const { rule } of fixedRules(network, '10.96.0.0/16')) assert.ok(rule.includes('name: "kds-1x2"'));
  });
});

describe('the service proxy', () => {
  it('sets rules while changes go on, and again when there are none', async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    let changed: (change: Change) => void = () => undefined;
    const store = {
      list: () => [],
      onChange: (listener: (change: Change) => void) => {
        changed = listener;
        return () => undefined;
      },
    };
    let times = 0;
    const set = (): Promise<void> => Promise.resolve(void times++);
    const network = { name: 'kds-1x2', bridge: 'kd1x2', subnet: '10.1.2.0/24' };
    const running = new ServiceProxy({ store, clock, log: silentLogger, set }, network).run(stop.signal);
    await clock.advance(0);
    assert.equal(times, 1);
    for (let i = 0; i < 20; i++) {
      changed({ resource: 'services' } as Change);
      await clock.advance(20);
    }
    assert.ok(times >= 6, `${times} times`);
    await clock.advance(100);
    const before = times;
    await clock.advance(30_000);
    assert.equal(times, before + 1);
    stop.abort();
    await running;
  });
});

describe('the DNS server', () => {
  const stop = new AbortController();
  const upstream = createSocket('udp4');
  const resolver = new Resolver({ timeout: 3000, tries: 1 });
  let port = 0;
  let running: Promise<void>;
  before(async () => {
    upstream.bind(0, '127.0.0.1');
    await once(upstream, 'listening');
    upstream.on('message', (query, from) => {
      const question = questionOf(query);
      assert.ok(question);
      upstream.send(
        encodeAnswer(query, question, CODES.ok, [{ type: 'A', address: '192.0.2.7' }], true),
        from.port,
        from.address,
      );
    });
    const store = {
      get: (_resource: string, key: string) => {
        const object = SERVICES.find((s) => `shop/${s.metadata.name}` === key);
        return object === undefined ? undefined : { object };
      },
      list: () => SLICES.map((object) => ({ object })),
    } as unknown as ObjectStore;
    const resolvers = (): Promise<readonly string[]> => Promise.resolve([`127.0.0.1#${upstream.address().port}`]);
    const server = new DnsServer(
      { store, clock: systemClock, log: silentLogger },
      { host: '127.0.0.1', port: await freePort(), resolvers },
    );
    port = await new Promise<number>((resolve, reject) => {
      running = server.run(stop.signal, resolve);
      running.catch(reject);
    });
    resolver.setServers([`127.0.0.1:${port}`]);
  });
  after(async () => {
    upstream.close();
    stop.abort();
    await running;
  });

  it("answers for services, and hands on what is not the cluster's", async () => {
    assert.deepEqual(await resolver.resolve4('web.shop.svc.cluster.local'), ['10.96.0.20']);
    assert.deepEqual(await resolver.resolve4('example.com'), ['192.0.2.7']);
    await assert.rejects(resolver.resolve4('no.shop.svc.cluster.local'), { code: 'ENOTFOUND' });
    const [srv] = await resolver.resolveSrv('_http._tcp.web.shop.svc.cluster.local');
    assert.deepEqual([srv?.name, srv?.port], ['web.shop.svc.cluster.local', 80]);
  });

  it('answers over TCP', async () => {
    const socket = connect(port, '127.0.0.1');
    const name = ['web', 'shop', 'svc', 'cluster', 'local'];
    const labels = name.map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
    const query = Buffer.concat([
      Buffer.from('000101000001000000000000', 'hex'),
      ...labels,
      Buffer.from([0, 0, 1, 0, 1]),
    ]);
    socket.write(Buffer.concat([Buffer.from([0, query.length]), query]));
    const [reply] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    assert.deepEqual([...reply.subarray(-4)], [10, 96, 0, 20]);
  });
});
