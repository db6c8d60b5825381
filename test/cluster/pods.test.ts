// Everything about pods and the objects they use, at the same time on one node.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startNode, type TestNode } from '../harness/node.ts';
import { imagesAndEventsSuite } from './images-and-events.ts';
import { lifecycleSuite } from './lifecycle.ts';
import { objectsSuite } from './objects.ts';
import { probesAndHooksSuite } from './probes-and-hooks.ts';
import { promisesSuite } from './promises.ts';
import { Scene } from './scene.ts';
import { workloadsSuite } from './workloads.ts';

let node: TestNode;
let scene: Scene;
let promises: Scene;
let probes: Scene;

before(async () => {
  node = await startNode();
  scene = await Scene.open(node, 'life');
  promises = await Scene.open(node, 'promises');
  probes = await Scene.open(node, 'probes');
});

after(async () => {
  await node?.stop();
});

describe('one node', { concurrency: true }, () => {
  lifecycleSuite(() => scene);
  objectsSuite(() => scene);
  imagesAndEventsSuite(() => scene);
  workloadsSuite(() => scene);
  promisesSuite(() => promises);
  probesAndHooksSuite(() => probes);
});

it('was never refused anything', async () => {
  assert.deepEqual(await node.refusals(), []);
});
