import { strict as assert } from 'node:assert';
import { describe, it } from 'node:test';
import { Findings, formatFieldError } from '../../../core/validation/field-error.ts';
import type { Json } from '../objects.ts';
import { checkService } from './service-checks.ts';

const PORT = { port: 80, protocol: 'TCP', targetPort: 80 };
const service = (spec: Json): Json => ({
  spec: { type: 'ClusterIP', sessionAffinity: 'None', clusterIP: '10.96.0.20', ports: [PORT], ...spec },
});
const OTHER = service({ type: 'NodePort', clusterIP: '10.96.0.9', ports: [{ ...PORT, nodePort: 30_009 }] });

const rows: readonly (readonly [name: string, spec: Json, problems: string, old?: Json])[] = [
  ['nothing wrong', {}, ''],
  ['an unknown type', { type: 'Foo' }, '"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'],
  ['no ports', { ports: [] }, 'spec.ports: Required value'],
  ['headless without ports', { clusterIP: 'None', ports: [] }, ''],
  [
    'headless with a node port',
    { clusterIP: 'None', type: 'NodePort' },
    "may not be set to 'None' for NodePort services",
  ],
  ['no address', { clusterIP: 'web' }, 'spec.clusterIPs[0]: Invalid value: "web": must be a valid IP address'],
  [
    'an address of elsewhere',
    { clusterIP: '1.2.3.4' },
    'failed to allocate IP 1.2.3.4: the provided network does not match the current range',
  ],
  [
    'an address of another',
    { clusterIP: '10.96.0.9' },
    'failed to allocate IP 10.96.0.9: provided IP is already allocated',
  ],
  ['an address it had', { clusterIP: '1.2.3.4' }, '', service({ clusterIP: '1.2.3.4' })],
  ['port 0', { ports: [{ ...PORT, port: 0 }] }, 'spec.ports[0].port: Invalid value: 0: must be between 1 and 65535'],
  ['a protocol', { ports: [{ ...PORT, protocol: 'FOO' }] }, 'supported values: "SCTP", "TCP", "UDP"'],
  ['a target port', { ports: [{ ...PORT, targetPort: 'Web_1' }] }, 'spec.ports[0].targetPort: Invalid value: "Web_1"'],
  ['a target port by number', { ports: [{ ...PORT, targetPort: 70_000 }] }, 'spec.ports[0].targetPort: Invalid value'],
  [
    'a port without a name beside another',
    {
      ports: [
        { ...PORT, name: 'a' },
        { ...PORT, port: 81 },
      ],
    },
    'spec.ports[1].name: Required value',
  ],
  [
    'two ports of one name',
    {
      ports: [
        { ...PORT, name: 'a' },
        { ...PORT, port: 81, name: 'a' },
      ],
    },
    'spec.ports[1].name: Duplicate value: "a"',
  ],
  [
    'a port twice',
    {
      ports: [
        { ...PORT, name: 'a' },
        { ...PORT, name: 'b' },
      ],
    },
    'spec.ports[1]: Duplicate value: {"port":80,"protocol":"TCP"}',
  ],
  [
    'one port over two protocols',
    {
      type: 'NodePort',
      ports: ['TCP', 'UDP'].map((p) => ({ ...PORT, name: p.toLowerCase(), protocol: p, nodePort: 30_001 })),
    },
    '',
  ],
  ['a node port without use', { ports: [{ ...PORT, nodePort: 30_001 }] }, "may not be used when `type` is 'ClusterIP'"],
  [
    'a node port of no range',
    { type: 'NodePort', ports: [{ ...PORT, nodePort: 80 }] },
    'The range of valid ports is 30000-32767',
  ],
  [
    'a node port of another',
    { type: 'NodePort', ports: [{ ...PORT, nodePort: 30_009 }] },
    'provided port is already allocated',
  ],
  [
    'a node port it had',
    { type: 'NodePort', ports: [{ ...PORT, nodePort: 80 }] },
    '',
    service({ ports: [{ nodePort: 80 }] }),
  ],
  ['an external address', { externalIPs: ['192.0.2.9', '2001:db8::1'] }, ''],
  ['no external address', { externalIPs: ['x; y'] }, 'spec.externalIPs[0]: Invalid value: "x; y": must be a valid IP'],
  ['the loopback as external address', { externalIPs: ['127.0.0.1'] }, 'may not be in the loopback range'],
  ['a selector', { selector: { 'a b': 'c' } }, 'spec.selector: Invalid value: "a b": name part must consist of'],
  ['a name elsewhere', { type: 'ExternalName', clusterIP: '', ports: [], externalName: 'example.com.' }, ''],
  ['no name elsewhere', { type: 'ExternalName', clusterIP: '', ports: [] }, 'spec.externalName: Required value'],
  [
    'a bad name elsewhere',
    { type: 'ExternalName', clusterIP: '', externalName: 'a..b' },
    'spec.externalName: Invalid value',
  ],
  [
    'a name elsewhere with an address',
    { type: 'ExternalName', externalName: 'example.com' },
    'spec.clusterIPs: Forbidden: may not be set for ExternalName services',
  ],
];

describe('what is wrong with a service', () => {
  for (const [name, spec, problems, old] of rows)
    it(name, () => {
      const f = new Findings();
      checkService(f, service(spec), old, [OTHER]);
      const said = f.list.map(formatFieldError).join('\n');
      assert.equal(f.list.length, problems === '' ? 0 : 1, said);
      assert.ok(said.includes(problems), said);
    });
});
