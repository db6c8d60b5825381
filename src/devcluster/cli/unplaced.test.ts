import assert from 'node:assert/strict';
import { it } from 'node:test';
import { askedPod, unplacedText } from './unplaced.ts';

it('says why a pod is on no node', () => {
  const pod = (message: string, spec = {}, phase = 'Pending'): Record<string, unknown> => ({
    metadata: { name: 'web', namespace: 'shop' },
    spec,
    status: { phase, conditions: message === '' ? [] : [{ type: 'PodScheduled', status: 'False', message }] },
  });
  const preemption = ' preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.';
  for (const [given, expected] of [
    [
      pod(`0/1 nodes are available: 1 Insufficient cpu.${preemption}`),
      'shop/web: The pod is on no node yet: 0/1 nodes are available: 1 Insufficient cpu.\nWhat to do: Ask for less, or delete pods that are not needed.\n',
    ],
    [
      pod('0/1 nodes are available: persistentvolumeclaim "x" not found. not found'),
      'shop/web: The pod is on no node yet: 0/1 nodes are available: persistentvolumeclaim "x" not found. not found\nWhat to do: Create the claim, or check its name in the pod.\n',
    ],
    [pod('something new'), 'shop/web: The pod is on no node yet: something new\n'],
    [pod(''), 'shop/web: The pod is on no node yet: the scheduler has not looked at it.\n'],
    [
      pod('', { schedulerName: 'mine' }),
      'shop/web: The pod is on no node yet: it waits for the scheduler "mine", which this cluster does not have.\n',
    ],
    [pod('', { nodeName: 'n1' }), undefined],
    [pod('', {}, 'Failed'), undefined],
  ] as const)
    assert.equal(unplacedText(given), expected);
});

it('finds the pod that is asked for', () => {
  for (const [words, expected] of [
    ['web', 'default/web'],
    ['shop/web', 'shop/web'],
    ['web -n shop', 'shop/web'],
    ['-n shop web', 'shop/web'],
    ['--namespace=shop -o json web', 'shop/web'],
    ['-o json', undefined],
    ['', undefined],
  ] as const) {
    const found = askedPod(words.split(' ').filter(Boolean));
    assert.equal(found === undefined ? undefined : `${found.namespace}/${found.name}`, expected, words);
  }
});
