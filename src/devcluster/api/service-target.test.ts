import { strict as assert } from 'node:assert';
import { describe, it } from 'node:test';
import type { Json } from './objects.ts';
import { serviceTarget } from './service-target.ts';

const SERVICE: Json = { spec: { ports: [{ port: 80 }, { name: 'admin', port: 81 }] } };
const ENDPOINTS: Json = {
  subsets: [
    { notReadyAddresses: [{ ip: '10.1.0.9' }], ports: [{ port: 8080 }] },
    { addresses: [{ ip: '10.1.0.2' }, { ip: '10.1.0.3' }], ports: [{ port: 8080 }, { name: 'admin', port: 8081 }] },
  ],
};

describe('where a request through the proxy of a service goes', () => {
  for (const [port, random, expected, endpoints] of [
    ['', 0, '10.1.0.2:8080', ENDPOINTS],
    ['', 0.99, '10.1.0.3:8080', ENDPOINTS],
    ['80', 0, '10.1.0.2:8080', ENDPOINTS],
    ['81', 0.5, '10.1.0.3:8081', ENDPOINTS],
    ['admin', 0, '10.1.0.2:8081', ENDPOINTS],
    ['82', 0, '503 no service port 82 found for service "web"', ENDPOINTS],
    ['other', 0, '503 no endpoints available for service "web"', ENDPOINTS],
    ['', 0, '503 no endpoints available for service "web"', {}],
    ['', 0, '404 endpoints "web" not found', undefined],
  ] as const)
    it(`port "${port}", ${random}: ${expected}`, () => {
      const asked = { name: 'web', port, service: SERVICE, endpoints };
      const seen = (): string => {
        try {
          const { host, port: number } = serviceTarget(asked, random);
          return `${host}:${number}`;
        } catch (err) {
          const { code, message } = err as { code: number; message: string };
          return `${code} ${message}`;
        }
      };
      assert.equal(seen(), expected);
    });

  it('is nowhere for a number without a service', () =>
    assert.throws(
      () => serviceTarget({ name: 'web', port: '80', service: undefined, endpoints: undefined }, 0),
      /services "web" not found/,
    ));
});
