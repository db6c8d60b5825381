// A row for every cause: what is known, and what is said of it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inOneLine, why } from './why.ts';
import {
  NOW,
  ago,
  appWith,
  containerIn,
  factsOf,
  crashed,
  checkRows,
  running,
  conditions,
  waitingFor,
} from './why.fixture.ts';

checkRows('what is said of a pod that is well', [
  ['Ready', 'ready', { status: { ...running({ ready: true }), ...conditions('Ready') } }, 'The pod is ready.'],
  [
    'ResizeInfeasible',
    'failing',
    {
      status: {
        ...running({ ready: true }),
        conditions: [
          { type: 'Ready', status: 'True' },
          {
            type: 'PodResizePending',
            status: 'True',
            reason: 'Infeasible',
            message: "Node didn't have enough capacity: cpu",
          },
        ],
      },
    },
    'The pod is ready, but its resize cannot be done on this node.',
  ],
  [
    'ResizeDeferred',
    'waiting',
    {
      status: {
        ...running({ ready: true }),
        conditions: [
          { type: 'Ready', status: 'True' },
          { type: 'PodResizePending', status: 'True', reason: 'Deferred' },
        ],
      },
    },
    'The pod is ready, but its resize waits for room on the node.',
  ],
  [
    'ResizeError',
    'failing',
    {
      status: {
        ...running({ ready: true }),
        conditions: [
          { type: 'Ready', status: 'True' },
          { type: 'PodResizeInProgress', status: 'True', reason: 'Error' },
        ],
      },
    },
    'The pod is ready, but its resize failed and is tried again.',
  ],
]);

describe('the answer', () => {
  it('says what was concluded from what, and what to do', () => {
    const found = why(
      factsOf({ status: crashed(137, 'OOMKilled'), pod: appWith({ resources: { limits: { memory: '64Mi' } } }) }),
    );
    assert.deepEqual(found.evidence, [
      `last run: exit code 137 (OOMKilled) at ${ago(23)}`,
      '4 restarts so far',
      'it ran for 2 s',
      'back-off 40s restarting failed container=app',
    ]);
    assert.equal(found.nextRetryMs, NOW + 17_000);
    assert.match(inOneLine(found), /next try in 17 s\. Raise the memory limit/);
  });

  it('names the other containers that fail beside the worst', () => {
    const status = {
      ...waitingFor('CreateContainerConfigError', 'secret "db" not found'),
      containerStatuses: [
        containerIn({ running: { startedAt: ago(9) } }, { started: true }),
        containerIn({ waiting: { reason: 'ErrImagePull', message: 'x509: expired' } }, { name: 'side' }),
        containerIn(
          { waiting: { reason: 'CreateContainerConfigError', message: 'secret "db" not found' } },
          { name: 'last' },
        ),
      ],
    };
    const found = why(factsOf({ status }));
    assert.equal(found.container, 'side');
    assert.match(found.evidence.at(-1) ?? '', /^also: Container "last" cannot start/);
  });

  it('is never without an answer', () => {
    assert.equal(why(factsOf({ status: { phase: 'Unknown' } })).cause, 'Unknown');
  });
});
