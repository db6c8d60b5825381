import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { createLocalApis, createPodsFeed } from './local-apis.ts';

describe('what agents of the node may ask', () => {
  for (const [on, sockets] of [
    [false, 1],
    [true, 2],
  ] as const)
    it(`PodsAPI ${on ? 'on' : 'off'}`, () => {
      const env = environmentOf({ gates: { PodsAPI: on } });
      const feed = createPodsFeed(env, {
        pods: { all: () => [], get: () => undefined },
        statuses: { get: () => undefined },
      });
      assert.equal(feed !== undefined, on);
      assert.equal(createLocalApis(env, { active: () => [], all: () => [], assigned: {}, feed }).length, sockets);
    });
});
