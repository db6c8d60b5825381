// Services: what is refused, and what becomes of addresses and ports when a service changes.
import { strict as assert } from 'node:assert';
import { it } from 'node:test';
import { dig, type Json } from './client.ts';
import type { Scene } from './scene.ts';

export function serviceContract(s: Scene): void {
  const path = (name = ''): string => `${s.path}/services${name === '' ? '' : `/${name}`}`;
  const make = (name: string, spec: Json) => s.api.post(path(), { metadata: { name }, spec });

  it('refuses services that make no sense, and says where', async () => {
    for (const [spec, why] of [
      [{ ports: [{ port: 0 }] }, /spec\.ports\[0\]\.port: Invalid value: 0: must be between 1 and 65535, inclusive/],
      [
        { ports: [{ port: 1, protocol: 'X' }] },
        /protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"/,
      ],
      [{ ports: [{ port: 1 }, { port: 2 }] }, /spec\.ports\[0\]\.name: Required value/],
      [{ ports: [{ port: 1 }], type: 'X' }, /spec\.type: Unsupported value: "X"/],
      [
        { ports: [{ port: 1 }], clusterIP: '192.0.2.1' },
        /failed to allocate IP 192\.0\.2\.1: the provided network does not match/,
      ],
      [{ ports: [{ port: 1 }], externalIPs: ['x'] }, /spec\.externalIPs\[0\]: Invalid value: "x": must be a valid IP/],
      [{ ports: [{ port: 1, nodePort: 30_000 }] }, /may not be used when `type` is 'ClusterIP'/],
      [{ ports: [{ port: 1, nodePort: 1 }], type: 'NodePort' }, /provided port is not in the valid range/],
      [{ type: 'ExternalName' }, /spec\.externalName: Required value/],
    ] as const) {
      const refused = await make('bad', spec as unknown as Json);
      assert.equal(refused.status, 422, String(why));
      assert.match(String(refused.body['message']), why);
    }
  });

  it('gives no address and no node port twice', async () => {
    const first = await make('first', { type: 'NodePort', ports: [{ port: 80 }] });
    assert.equal(first.status, 201);
    assert.equal(dig(first.body, 'spec', 'externalTrafficPolicy'), 'Cluster');
    const clusterIP = dig(first.body, 'spec', 'clusterIP');
    const nodePort = dig(first.body, 'spec', 'ports', 0, 'nodePort');
    const address = await make('second', { clusterIP, ports: [{ port: 80 }] });
    assert.equal(address.status, 422);
    assert.match(String(address.body['message']), /provided IP is already allocated/);
    const port = await make('second', { type: 'NodePort', ports: [{ port: 80, nodePort }] });
    assert.equal(port.status, 422);
    assert.match(String(port.body['message']), /nodePort: Invalid value: \d+: provided port is already allocated/);
  });

  it('keeps addresses and node ports as long as its type has them', async () => {
    const before = (await make('turns', { type: 'NodePort', ports: [{ port: 80 }] })).body;
    const replaced = await s.api.put(path('turns'), {
      metadata: { name: 'turns' },
      spec: { type: 'NodePort', ports: [{ port: 81 }] },
    });
    assert.equal(replaced.status, 200, replaced.text);
    for (const field of [['clusterIP'], ['ports', 0, 'nodePort']])
      assert.equal(dig(replaced.body, 'spec', ...field), dig(before, 'spec', ...field), field.join('.'));
    const inside = (await s.api.merge(path('turns'), { spec: { type: 'ClusterIP' } })).body;
    assert.equal(dig(inside, 'spec', 'ports', 0, 'nodePort'), undefined);
    assert.equal(dig(inside, 'spec', 'externalTrafficPolicy'), undefined);
    assert.equal(dig(inside, 'spec', 'clusterIP'), dig(before, 'spec', 'clusterIP'));
    const elsewhere = await s.api.merge(path('turns'), { spec: { type: 'ExternalName', externalName: 'example.com' } });
    assert.equal(elsewhere.status, 200, elsewhere.text);
    for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'])
      assert.equal(dig(elsewhere.body, 'spec', field), undefined, field);
    const back = await s.api.merge(path('turns'), { spec: { type: 'ClusterIP', externalName: null } });
    assert.match(String(dig(back.body, 'spec', 'clusterIP')), /^10\./);
  });
}
