// The pure halves of the views: rows, details, spec, pulls, logs, calls and the last hour.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { ContainerStatus, Pod, PodStatus } from '../core/pod.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Moment, type NodeFigures } from '../stats/summary-types.ts';
import { CallLog } from './call-log.ts';
import { NodeHistory } from './history.ts';
import { byTime, LineReader } from './log-stream.ts';
import { readyView } from './node-ready.ts';
import { nodeUse } from './node-use.ts';
import { compared, containerViews, probeWords, volumeViews } from './pod-details.ts';
import { countPods, explainedRow, podRow } from './pod-row.ts';
import { pullViews } from './pull-views.ts';
import { specText } from './spec-text.ts';

const status = (name: string, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name,
  state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
  lastState: {},
  ready: true,
  restartCount: 0,
  image: 'busybox:1',
  imageID: 'sha256:1',
  containerID: 'containerd://c',
  ...more,
});

const pod = (podStatus: PodStatus, spec: Partial<Pod['spec']> = {}, meta: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'web', namespace: 'shop', uid: 'u1', ...meta },
  spec: { containers: [{ name: 'main', image: 'busybox:1' }], ...spec },
  status: podStatus,
});

const READY = [{ type: 'Ready', status: 'True' }] as NonNullable<PodStatus['conditions']>;

describe('a pod as a row', () => {
  const waiting = (reason: string): ContainerStatus => status('main', { state: { waiting: { reason } }, ready: false });
  const ended = (exitCode: number, reason: string): ContainerStatus =>
    status('main', {
      state: { terminated: { exitCode, reason, startedAt: null, finishedAt: '2026-01-01T00:00:00Z' } },
      ready: false,
    });
  const table: readonly [string, Pod, string, string][] = [
    ['new', pod({}), 'Pending', 'busy'],
    ['ready', pod({ phase: 'Running', conditions: READY, containerStatuses: [status('main')] }), 'Running', 'ok'],
    ['not ready', pod({ phase: 'Running', containerStatuses: [status('main', { ready: false })] }), 'Running', 'warn'],
    [
      'creating',
      pod({ phase: 'Pending', containerStatuses: [waiting('ContainerCreating')] }),
      'ContainerCreating',
      'busy',
    ],
    [
      'crashing',
      pod({ phase: 'Running', containerStatuses: [waiting('CrashLoopBackOff')] }),
      'CrashLoopBackOff',
      'bad',
    ],
    ['no image', pod({ phase: 'Pending', containerStatuses: [waiting('ErrImagePull')] }), 'ErrImagePull', 'bad'],
    ['completed', pod({ phase: 'Succeeded', containerStatuses: [ended(0, 'Completed')] }), 'Completed', 'idle'],
    ['failed', pod({ phase: 'Failed', containerStatuses: [ended(3, 'Error')] }), 'Error', 'bad'],
    ['evicted', pod({ phase: 'Failed', reason: 'Evicted' }), 'Evicted', 'bad'],
    [
      'being stopped',
      pod({ phase: 'Running', conditions: READY }, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      'Terminating',
      'busy',
    ],
    [
      'first of two init containers',
      pod(
        { phase: 'Pending', initContainerStatuses: [status('a')], containerStatuses: [waiting('PodInitializing')] },
        { initContainers: [{ name: 'a' }, { name: 'b' }] },
      ),
      'Init:0/2',
      'busy',
    ],
    [
      'failing init container',
      pod(
        { phase: 'Pending', initContainerStatuses: [{ ...waiting('CrashLoopBackOff'), name: 'a' }] },
        { initContainers: [{ name: 'a' }] },
      ),
      'Init:CrashLoopBackOff',
      'bad',
    ],
  ];
  for (const [name, its, state, tone] of table)
    it(`${name}: ${state}`, () => {
      const row = podRow(its, undefined);
      assert.deepEqual([row.state, row.tone], [state, tone]);
    });

  it('is no longer just starting when it keeps failing on the way', () => {
    const row = podRow(pod({ phase: 'Pending', containerStatuses: [waiting('ContainerCreating')] }), undefined);
    const why = { cause: 'x', sentence: 'It waits.', evidence: [], todo: '' };
    for (const [state, tone] of [
      ['progressing', 'busy'],
      ['waiting', 'busy'],
      ['failing', 'bad'],
    ] as const)
      assert.equal(explainedRow(row, { ...why, state }).tone, tone, state);
    assert.equal(explainedRow({ ...row, state: 'Terminating' }, { ...why, state: 'failing' }).tone, 'busy');
    assert.equal(explainedRow(row, { ...why, state: 'ready' }).why, undefined);
  });

  const bare = (state: ContainerStatus['state']): string =>
    podRow(pod({ phase: 'Running', containerStatuses: [status('main', { state, ready: false })] }), undefined).state;
  const end = { startedAt: null, finishedAt: null };
  const initRow = (its: Partial<ContainerStatus>, restartPolicy?: 'Always'): string =>
    podRow(
      pod(
        { initContainerStatuses: [status('a', its)] },
        { initContainers: [{ name: 'a', ...(restartPolicy === undefined ? {} : { restartPolicy }) }] },
      ),
      undefined,
    ).state;
  for (const [name, seen, expected] of [
    ['an end without a reason', bare({ terminated: { exitCode: 3, ...end } }), 'ExitCode:3'],
    ['an end with signal 0', bare({ terminated: { exitCode: 3, signal: 0, ...end } }), 'ExitCode:3'],
    ['an end by a signal', bare({ terminated: { exitCode: 137, signal: 9, ...end } }), 'Signal:9'],
    ['a failed init container', initRow({ state: { terminated: { exitCode: 1, ...end } } }), 'Init:Error'],
    ['an init container that has ended', initRow({ state: { terminated: { exitCode: 0, ...end } } }), 'Pending'],
    ['an init container without its image', initRow({ state: { waiting: { reason: 'ErrPull' } } }), 'Init:ErrPull'],
    ['an init container to come', initRow({ state: { waiting: { reason: 'PodInitializing' } } }), 'Init:0/1'],
    ['a started sidecar', initRow({ started: true }, 'Always'), 'Pending'],
    ['an init container nobody knows of', podRow(pod({}, { initContainers: [{ name: 'b' }] }), {}).state, 'Pending'],
  ] as const)
    it(`${name}: ${expected}`, () => assert.equal(seen, expected));

  it('counts sidecars, and has only what is known', () => {
    const its = pod(
      { initContainerStatuses: [status('side')], containerStatuses: [status('main')], podIP: '10.0.0.1' },
      { initContainers: [{ name: 'side', restartPolicy: 'Always' }, { name: 'init' }] },
      { creationTimestamp: '2026-01-01T00:00:00Z', annotations: { 'kubernetes.io/config.source': 'file' } },
    );
    const row = podRow(its, {});
    assert.deepEqual(
      [row.readyContainers, row.containers, row.ip, row.createdAtMs, row.source],
      [2, 2, '10.0.0.1', Date.UTC(2026, 0, 1), 'file'],
    );
    const empty = podRow({ metadata: { name: 'x' }, spec: { containers: [] } }, undefined);
    assert.deepEqual([empty.uid, empty.state, empty.source, 'ip' in empty], ['', 'Pending', 'api', false]);
  });

  it('has restarts with their reason, use and limits', () => {
    const last = {
      terminated: { exitCode: 137, reason: 'OOMKilled', startedAt: null, finishedAt: '2026-01-01T00:00:00Z' },
    };
    const row = podRow(
      pod(
        {
          phase: 'Running',
          conditions: READY,
          containerStatuses: [status('main', { restartCount: 4, lastState: last })],
        },
        { containers: [{ name: 'main', resources: { limits: { cpu: '250m', memory: '64Mi' } } }] },
      ),
      { cpuCores: 0.1, memoryBytes: 1000 },
    );
    assert.equal(row.restarts, 4);
    assert.equal(row.lastExit, 'OOMKilled (137)');
    assert.equal(row.lastExitMs, Date.UTC(2026, 0, 1));
    const unknown = { exitCode: 137, reason: 'ContainerStatusUnknown', startedAt: null, finishedAt: null };
    const lost = status('main', { restartCount: 1, lastState: { terminated: unknown } });
    const found = podRow(pod({ phase: 'Running', containerStatuses: [lost] }), undefined);
    assert.deepEqual([found.lastExit, 'lastExitMs' in found], ['ContainerStatusUnknown (137)', false]);
    assert.deepEqual([row.cpuLimitCores, row.memoryLimitBytes], [0.25, 64 * 1024 * 1024]);
    assert.deepEqual([row.cpuCores, row.memoryBytes, row.readyContainers, row.containers], [0.1, 1000, 1, 1]);
    assert.deepEqual(countPods([row], 110), {
      total: 1,
      ready: 1,
      starting: 0,
      notReady: 0,
      stopping: 0,
      ended: 0,
      max: 110,
    });
  });
});

describe('a pod in detail', () => {
  it('names kinds of containers, and what each waits for', () => {
    const views = containerViews(
      pod(
        { containerStatuses: [status('main', { state: { waiting: { reason: 'ErrImagePull', message: 'no such' } } })] },
        { initContainers: [{ name: 'init' }, { name: 'side', restartPolicy: 'Always' }] },
      ),
      () => undefined,
    );
    assert.deepEqual(
      views.map((v) => [v.name, v.kind, v.state, v.tone, v.message]),
      [
        ['init', 'init', 'Not created', 'idle', undefined],
        ['side', 'sidecar', 'Not created', 'idle', undefined],
        ['main', 'main', 'ErrImagePull', 'bad', 'no such'],
      ],
    );
  });

  it('describes probes in one line', () => {
    assert.equal(probeWords({ httpGet: { port: 8080, path: '/ok' } }), 'GET http://:8080/ok');
    assert.equal(probeWords({ tcpSocket: { port: 'db' } }), 'connect to :db');
    assert.equal(probeWords({ exec: { command: ['sh', '-c', 'true'] } }), 'exec sh -c true');
    assert.equal(probeWords({ grpc: { port: 1 } }), 'gRPC health :1');
  });

  it('says of volumes what they are and what they wait for, and of none what is in it', () => {
    const views = volumeViews(
      pod(
        {},
        {
          volumes: [
            { name: 'a', secret: { secretName: 'login' } },
            { name: 'b', emptyDir: {} },
          ],
        },
      ),
      { mounted: new Set(['b']), waiting: new Map([['a', 'secret "login" not found']]), use: new Map() },
    );
    assert.deepEqual(views, [
      { name: 'a', kind: 'secret login', tone: 'busy', waitsFor: 'secret "login" not found' },
      { name: 'b', kind: 'emptyDir', tone: 'ok' },
    ]);
  });

  it('puts the spec beside what runs, what differs first', () => {
    const its = pod(
      { containerStatuses: [status('main', { resources: { limits: { cpu: '100m' } } })] },
      { containers: [{ name: 'main', image: 'busybox:1', resources: { limits: { cpu: '0.2' } } }] },
    );
    assert.deepEqual(compared(its, undefined), [
      { what: 'main: cpu limit', wanted: '0.2', running: '100m', same: false },
      { what: 'main: image', wanted: 'busybox:1', running: 'busybox:1', same: true },
    ]);
  });

  it('shows the spec without what sounds like a secret', () => {
    const text = specText(
      pod(
        {},
        {
          containers: [
            {
              name: 'main',
              env: [
                { name: 'DB_PASSWORD', value: 'planted-1' },
                { name: 'URL', value: 'postgres://user:planted-2@db/x' },
                { name: 'COLOR', value: 'blue' },
              ],
            },
          ],
        },
        { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': 'planted-3', a: 'yes' } },
      ),
    );
    assert.doesNotMatch(text, /planted/);
    assert.match(text, /value: blue/);
    assert.match(text, /a: "yes"/);
    const odd = specText({
      metadata: { name: 'x' },
      spec: { containers: [], nodeSelector: {}, hostNetwork: true, tolerations: null } as never,
    });
    assert.match(odd, /containers: \[\]\n {2}nodeSelector: \{\}\n {2}hostNetwork: true\n {2}tolerations: null/);
    assert.match(text, /containers:\n {4}- name: main\n {6}env:\n {8}- name: DB_PASSWORD\n {10}value: "\(hidden\)"/);
  });
});

describe('pulls', () => {
  it('of one image for several pods are one line', () => {
    const common = { namespace: 'n', image: 'big:1', sinceMs: 5 } as const;
    const views = pullViews([
      { ...common, podUid: podUid('1'), pod: 'a', phase: 'queued' },
      {
        ...common,
        podUid: podUid('2'),
        pod: 'b',
        phase: 'pulling',
        pullingSinceMs: 7,
        progress: {
          source: 'layers',
          doneBytes: 10,
          totalBytes: 100,
          bytesPerSecond: 5,
          remainingSeconds: 18,
          layers: [],
        },
      },
    ]);
    assert.deepEqual(views, [
      {
        image: 'big:1',
        state: 'pulling',
        startedAtMs: 7,
        pods: ['n/a', 'n/b'],
        doneBytes: 10,
        totalBytes: 100,
        bytesPerSecond: 5,
        leftMs: 18_000,
        layers: [],
      },
    ]);
  });
});

describe('log lines', () => {
  it('are put together from chunks and ordered by time', () => {
    const a = new LineReader('a');
    const lines = [
      ...a.read(Buffer.from('2026-01-01T00:00:02Z two\n2026-01-01T00')),
      ...a.read(Buffer.from(':00:03Z th')),
    ];
    const b = new LineReader('b').read(Buffer.from('2026-01-01T00:00:01Z one\n2026-01-01T00:00:02Z \n'));
    assert.deepEqual(
      byTime([...lines, ...a.end(), ...b]).map((l) => `${l.c}:${l.s}`),
      ['b:one', 'a:two', 'b:', 'a:th'],
    );
  });

  it('are cut where they are too long, in one pass over what a container prints without a newline', () => {
    const reader = new LineReader('a');
    const chunk = Buffer.alloc(48 * 1024, 'x');
    reader.read(Buffer.from('t '));
    const before = process.threadCpuUsage();
    for (let i = 0; i < 1400; i++) assert.deepEqual(reader.read(chunk), []);
    const { user, system } = process.threadCpuUsage(before);
    assert.ok(user + system < 2_000_000, `${user + system} µs for 69 MB`);
    const lines = [...reader.read(Buffer.from('x\nt short\nt ')), ...reader.end()];
    assert.deepEqual(
      lines.map(({ s }) => [s.length, s.slice(-2)]),
      [
        [16 * 1024 - 1, 'x…'],
        [5, 'rt'],
        [0, ''],
      ],
    );
  });

  it('may be cut in the middle of a character', () => {
    const reader = new LineReader('a');
    const bytes = Buffer.from('t ü\n');
    assert.deepEqual(
      [...reader.read(bytes.subarray(0, 3)), ...reader.read(bytes.subarray(3))],
      [{ c: 'a', t: 't', s: 'ü' }],
    );
  });
});

describe('calls', () => {
  it('in flight are listed with their age, answered ones counted', async () => {
    const clock = new ManualClock();
    const calls = new CallLog(clock);
    const gate = Promise.withResolvers<void>();
    const slow = calls.intercept('createContainer', () => gate.promise);
    await assert.rejects(
      calls.intercept('listContainers', () => Promise.reject(new Error('no'))),
      /no/,
    );
    const end = calls.begin('api', 'GET /api/v1/nodes/n');
    await clock.advance(20);
    assert.deepEqual(
      calls.inFlight().map((c) => `${c.to} ${c.call}`),
      ['runtime createContainer', 'api GET /api/v1/nodes/n'],
    );
    end(true);
    gate.resolve();
    await slow;
    assert.deepEqual(calls.inFlight(), []);
    assert.deepEqual(calls.latency('runtime'), { calls: 2, failed: 1, inFlight: 0, p50Ms: 20, p99Ms: 20 });
    assert.deepEqual(calls.latency('api'), { calls: 1, failed: 0, inFlight: 0, p50Ms: 20, p99Ms: 20 });
  });
});

describe('the last hour', () => {
  const figures = (cores: number): NodeFigures =>
    ({ cpu: { time: new Moment(0), usageNanoCores: cores * 1e9 } }) as unknown as NodeFigures;

  it('has a value per ten seconds, gaps where nobody measured, and ends after an hour', async () => {
    const clock = new ManualClock();
    const history = new NodeHistory(clock);
    history.observe(figures(1));
    history.observe(figures(2));
    await clock.advance(30_000);
    history.observe(figures(3));
    assert.deepEqual(history.view().series.cpu, [2, null, null, 3]);
    for (let i = 0; i < 400; i++) {
      await clock.advance(10_000);
      history.observe(figures(4));
    }
    assert.equal(history.view().series.cpu.length, 360);
    assert.ok(history.view().series.cpu.every((v) => v === 4));
  });
});

describe('the node', () => {
  it('is ready or says why not and what to do', () => {
    const condition = {
      type: 'Ready',
      status: 'False',
      reason: 'KubeletNotReady',
      message: 'cni plugin not initialized',
    };
    const view = readyView([condition] as never, [], []);
    assert.equal(view.ready, false);
    assert.equal(view.why.sentence, 'The node is not ready: cni plugin not initialized.');
    assert.match(view.why.fix ?? '', /CNI/);
    assert.equal(readyView(undefined, [], []).ready, true);
    assert.equal(readyView(undefined, ['container runtime is down'], []).ready, false);
  });

  it('shows one disk once', () => {
    const fs = { time: new Moment(0), capacityBytes: 100, availableBytes: 40, usedBytes: 50, inodes: 9, inodesUsed: 1 };
    const use = nodeUse({ fs, runtime: { imageFs: fs } } as unknown as NodeFigures);
    assert.deepEqual(use.disks, [
      { name: 'node and images', usedBytes: 60, capacityBytes: 100, inodes: 9, inodesUsed: 1 },
    ]);
    assert.deepEqual(nodeUse(undefined), { disks: [], psi: {} });
  });
});
