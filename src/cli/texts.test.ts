import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { NowView, PodRow } from '../page/model.ts';
import type { Why } from '../why/facts.ts';
import { cut } from './table.ts';
import { eventsText, manifestsText, pullsText, topText, whyAllText, whyText } from './texts.ts';

const NOW = Date.parse('2026-05-04T10:00:00Z');
const why = (more: Partial<Why> = {}): Why => ({
  state: 'failing',
  cause: 'ImageNotFound',
  sentence: 'Image "x" cannot be pulled.',
  evidence: ['ErrImagePull: not found', 'failed 3 times so far'],
  todo: 'Check its name.',
  ...more,
});

const row = (name: string, more: Partial<PodRow>): PodRow => ({
  uid: name,
  namespace: 'shop',
  name,
  state: 'Running',
  tone: 'ok',
  readyContainers: 1,
  containers: 1,
  restarts: 0,
  source: 'api',
  createdAtMs: NOW - 3_600_000,
  cpuCores: 0.25,
  memoryBytes: 31e6,
  ...more,
});

describe('what the commands print', () => {
  it('why of one pod', () => {
    assert.equal(
      whyText({ namespace: 'shop', name: 'web', why: why() }),
      'shop/web: Image "x" cannot be pulled.\n  - ErrImagePull: not found\n  - failed 3 times so far\nWhat to do: Check its name.\n',
    );
    const well = why({ sentence: 'The pod is ready.', evidence: [], todo: '' });
    assert.equal(whyText({ namespace: 'shop', name: 'web', why: well }), 'shop/web: The pod is ready.\n');
  });

  it('why of all that do not run', () => {
    assert.equal(whyAllText([]), 'All pods are ready or done.\n');
    assert.equal(
      whyAllText([{ namespace: 'shop', name: 'web', why: why() }]),
      'POD       STATE    WHY\nshop/web  failing  Image "x" cannot be pulled.\n',
    );
  });

  it('problems in manifests, with the place', () => {
    assert.equal(manifestsText([]), '');
    const problem = { source: 'file', where: '/m/a.yaml', severity: 'error', message: 'no.', since: '' } as const;
    assert.equal(
      manifestsText([problem, { ...problem, line: 3 }, { ...problem, line: 3, column: 7 }]),
      '\nProblems in manifests:\n  /m/a.yaml: no.\n  /m/a.yaml:3: no.\n  /m/a.yaml:3:7: no.\n',
    );
    assert.match(topText({ ...now(), problems: 2 }, { atMs: NOW, pods: [] }), /\nmanifests 2 with problems, see: /);
  });

  it('events', () => {
    assert.equal(eventsText([], NOW), 'No events.\n');
    const event = {
      metadata: { name: 'e' },
      involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web' },
      type: 'Warning',
      reason: 'BackOff',
      message: 'Back-off\n pulling',
      count: 4,
      lastTimestamp: '2026-05-04T09:58:00Z',
    };
    const node = { ...event, involvedObject: { kind: 'Node', name: 'n1' }, count: 1 };
    assert.equal(
      eventsText([event, node], NOW),
      'AGE    TYPE     REASON   OBJECT        MESSAGE\n' +
        '2 min  Warning  BackOff  pod/shop/web  Back-off pulling (4 times)\n' +
        '2 min  Warning  BackOff  node/n1       Back-off pulling\n',
    );
  });

  it('pulls', () => {
    assert.equal(pullsText([], NOW), 'No images are being pulled.\n');
    const pull = { podUid: podUid('u'), namespace: 'shop', pod: 'web', image: 'app:1', sinceMs: NOW - 30_000 } as const;
    const progress = {
      source: 'layers',
      doneBytes: 2e8,
      totalBytes: 8e8,
      bytesPerSecond: 5e6,
      remainingSeconds: 120,
      layers: [],
    } as const;
    assert.equal(
      pullsText(
        [
          { ...pull, phase: 'pulling', pullingSinceMs: NOW - 9000, progress },
          { ...pull, phase: 'queued', ahead: 1 },
        ],
        NOW,
      ),
      'POD       IMAGE  PROGRESS\nshop/web  app:1  25 % of 800 MB, 5.0 MB/s, 2 min left\nshop/web  app:1  queued behind 1, 30 s so far\n',
    );
  });

  it('the node and its pods, what needs attention first', () => {
    const pods = [
      row('a', {}),
      row('z', {
        state: 'CrashLoopBackOff',
        tone: 'bad',
        readyContainers: 0,
        restarts: 4,
        lastExit: 'OOMKilled (137)',
        why: { sentence: 'It needs memory.', evidence: [] },
      }),
    ];
    const text = topText(now(), { atMs: NOW, pods });
    assert.equal(
      text,
      `n1  NOT READY  v1.36.0  containerd 2.1  up 2 h
  No network.
pods      2 of 110 (1 ready, 1 not ready)
cpu       1.50 of 4 cores
memory    ? of 8.0 GB
rootfs    20.0 GB of 100 GB
waiting   cpu 1.5 % of the last 10 s
kubelet   0.01 cores, 80.0 MB, up 1 h

NAMESPACE  POD  STATE             READY  RESTARTS           CPU   MEMORY   AGE  WHY
shop       z    CrashLoopBackOff  0/1    4 OOMKilled (137)  0.25  31.0 MB  1 h  It needs memory.
shop       a    Running           1/1    0                  0.25  31.0 MB  1 h
`,
    );
    assert.match(topText(now(), { atMs: NOW, pods: [] }), /\n\nNo pods\.\n$/);
  });

  it('what is not known is left open', () => {
    const bare = { metadata: { name: 'e' }, involvedObject: {}, eventTime: '2026-05-04T09:58:00Z' };
    assert.equal(eventsText([bare], NOW), 'AGE    TYPE  REASON  OBJECT  MESSAGE\n2 min                /\n');
    const pull = { podUid: podUid('u'), namespace: 'n', pod: 'p', image: 'i', sinceMs: NOW - 9000 } as const;
    assert.match(pullsText([{ ...pull, phase: 'queued' }], NOW), /queued behind 0, 9 s so far/);
    assert.match(pullsText([{ ...pull, phase: 'pulling' }], NOW), / {2}i {6}\S/);
    const ready = { ready: true, why: { sentence: '', evidence: [] } };
    const pulls = [{}] as unknown as NowView['pulls'];
    const { cpuCores: _, ...agent } = now().agent;
    const text = topText(
      { ...now(), ready, agent, pulls, use: { disks: [], psi: {} } },
      { atMs: NOW, pods: [{ ...row('a', {}), createdAtMs: undefined } as unknown as PodRow, row('b', {})] },
    );
    assert.match(text, /^n1 {2}Ready {2}v1.36.0/);
    assert.match(text, /, 1 pulls\ncpu {7}\? of 4 cores\n/);
    assert.match(text, /kubelet {3}\? cores/);
    assert.match(text, /shop {7}a {4}Running.*31.0 MB\n.*b /s);
    assert.doesNotMatch(text, /waiting/);
  });

  it('cut to the width of a terminal', () => {
    assert.equal(cut('abcdef\nabc', 4), 'abc…\nabc');
  });
});

const now = (): NowView =>
  ({
    atMs: NOW,
    problems: 0,
    node: {
      name: 'n1',
      version: 'v1.36.0',
      runtime: 'containerd 2.1',
      cpus: 4,
      memoryBytes: 8e9,
      startedAtMs: NOW - 7_200_000,
    },
    ready: { ready: false, why: { sentence: 'No network.', evidence: [] } },
    use: {
      cpuCores: 1.5,
      disks: [{ name: 'rootfs', usedBytes: 20e9, capacityBytes: 100e9 }],
      psi: { cpu: { some: 1.5, full: 0 } },
    },
    pods: { total: 2, ready: 1, starting: 0, notReady: 1, stopping: 0, ended: 0, max: 110 },
    agent: { cpuCores: 0.01, rssBytes: 80e6, uptimeMs: 3_600_000 },
    pulls: [],
  }) as unknown as NowView;
