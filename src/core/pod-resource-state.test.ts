import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatState, goJson } from './go-json.ts';
import { formatPodResourceState, parsePodResourceState } from './pod-resource-state.ts';

const stateOf = (entries: object): string =>
  formatState(new Map(Object.entries(entries).map(([name, value]) => [name, goJson(value)])));

/** The Go kubelet puts all of an entry in the place of what the spec has: without its claims a container loses its devices. */
const claiming = { requests: { cpu: '1' }, claims: [{ name: 'gpu', request: 'one' }, { name: 'nic' }] };
const sized = { requests: { cpu: '100m', memory: '64Mi' } };

describe('the state of pod resources', () => {
  for (const [name, entry, wanted] of [
    [
      'as the Go kubelet writes it',
      { ContainerResources: { c: sized }, PodLevelResources: null },
      { containers: { c: sized } },
    ],
    ['of the pod as a whole', { ContainerResources: {}, PodLevelResources: sized }, { containers: {}, pod: sized }],
    ['without containers', { ContainerResources: null, PodLevelResources: null }, { containers: {} }],
    ['with nulls all the way down', { ContainerResources: { c: { limits: null } } }, { containers: { c: {} } }],
    ['of a container that asks for nothing', { ContainerResources: { c: null } }, { containers: { c: {} } }],
    ['with claims', { ContainerResources: { c: claiming } }, { containers: { c: claiming } }],
    ['from before pod-level resources', { ContainerResources: { c: sized } }, { containers: { c: sized } }],
  ] as const)
    it(`is read ${name}`, () =>
      assert.deepEqual(parsePodResourceState(stateOf({ u: entry })), {
        pods: new Map([['u', wanted]]),
        damaged: [],
      }));

  for (const [name, entry, problem] of [
    ['that is a number', 7, 'the entry is no object'],
    ['whose containers are a list', { ContainerResources: [] }, 'ContainerResources is no object'],
    [
      'with an odd quantity',
      { ContainerResources: { c: { requests: { cpu: 'much' } } } },
      'ContainerResources[c].requests[cpu] is no quantity',
    ],
    ['with one claim', { ContainerResources: { c: { claims: {} } } }, 'ContainerResources[c].claims is no list'],
    [
      'with a claim that has no name',
      { ContainerResources: { c: { claims: [{ request: 'x' }] } } },
      'ContainerResources[c].claims[0] has no name',
    ],
    [
      'with a number for a quantity',
      { PodLevelResources: { limits: { cpu: 1 } } },
      'PodLevelResources.limits[cpu] is no quantity',
    ],
  ] as const)
    it(`drops and names an entry ${name}, and keeps the others`, () =>
      assert.deepEqual(parsePodResourceState(stateOf({ bad: entry, good: { ContainerResources: { c: sized } } })), {
        pods: new Map([['good', { containers: { c: sized } }]]),
        damaged: [{ uid: 'bad', problem }],
      }));

  it('may have nothing where a pod or its lists should be', () => {
    const text = stateOf({
      a: null,
      b: { ContainerResources: { c: { limits: null, requests: { cpu: '1' } }, d: null } },
    });
    assert.deepEqual(
      [...parsePodResourceState(text).pods],
      [
        ['a', { containers: {} }],
        ['b', { containers: { c: { requests: { cpu: '1' } }, d: {} } }],
      ],
    );
  });

  it('is written with sorted keys and null for a pod without its own resources', () => {
    const text = formatPodResourceState(
      new Map([
        ['b', { containers: { z: {}, a: { requests: { memory: '1Mi', cpu: '1' }, limits: { cpu: '2' } } } }],
        ['a', { containers: {}, pod: sized }],
        ['c', { containers: { c: claiming } }],
      ]),
    );
    const { data } = JSON.parse(text) as { data: string };
    assert.equal(
      data,
      '{"entries":{"a":{"ContainerResources":{},"PodLevelResources":{"requests":{"cpu":"100m","memory":"64Mi"}}},' +
        '"b":{"ContainerResources":{"a":{"limits":{"cpu":"2"},"requests":{"cpu":"1","memory":"1Mi"}},"z":{}},"PodLevelResources":null},' +
        '"c":{"ContainerResources":{"c":{"requests":{"cpu":"1"},"claims":[{"name":"gpu","request":"one"},{"name":"nic"}]}},"PodLevelResources":null}}}',
    );
  });
});
