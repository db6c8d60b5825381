import assert from 'node:assert/strict';
import { it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { AllocatedResourceStatus, Container } from '../core/pod.ts';
import { emptySnapshot } from '../core/snapshot.ts';
import { containerStatuses } from './container-status.ts';

const health = (name: string): readonly AllocatedResourceStatus[] => [
  { name, resources: [{ resourceID: 'd', health: 'Healthy' }] },
];

it('a main container tells of the devices of plugins, then of claims; what it said before does not stay', () => {
  const containers = [{ name: 'both' }, { name: 'none' }];
  const input = {
    pod: { metadata: { name: 'p' }, spec: { containers } },
    snapshot: emptySnapshot(podUid('u'), 'p', 'n'),
    runtimeName: 'r',
    previous: [
      {
        name: 'none',
        state: { terminated: { exitCode: 0, startedAt: null, finishedAt: null } },
        lastState: {},
        ready: false,
        restartCount: 0,
        image: '',
        imageID: '',
        allocatedResourcesStatus: health('old'),
      },
    ],
    startErrors: () => undefined,
    terminationMessage: () => '',
    actuated: { containers: new Map() },
    restartingAll: false,
    deviceHealth: [
      ({ name }: Container) => (name === 'both' ? health('v/r') : undefined),
      ({ name }: Container) => (name === 'both' ? health('claim:c') : undefined),
    ],
  };
  const [both, none] = containerStatuses('main', containers, input);
  assert.deepEqual(both?.allocatedResourcesStatus, [...health('v/r'), ...health('claim:c')]);
  assert.equal(none?.allocatedResourcesStatus, undefined);
  assert.equal(containerStatuses('init', containers, input)[0]?.allocatedResourcesStatus, undefined);
});
