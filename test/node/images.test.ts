// Pulling on real runtimes from a registry on loopback: credentials, policies, sharing, the texts of failures.
// runs: gate
// shows: image pulls, pull secrets, credential providers, pull records, image garbage collection
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Secret } from '../../src/core/node.ts';
import type { Pod } from '../../src/core/pod.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GrpcChannel } from '../../src/lib/grpc/channel.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Registry } from '../../src/lib/metrics.ts';
import { Credentials } from '../../src/images/credentials.ts';
import { imageFilesystem } from '../../src/images/image-fs.ts';
import { ImageGc } from '../../src/images/image-gc.ts';
import { ImagePuller, type ImageRequest } from '../../src/images/image-puller.ts';
import { PullMeter } from '../../src/images/pull-meter.ts';
import type { PullProgress } from '../../src/images/pull-progress.ts';
import { PullRecords } from '../../src/images/pull-records.ts';
import { readSandboxImage } from '../../src/cri/connection.ts';
import { ContainerdContent } from '../../src/cri/containerd-content.ts';
import { SANDBOX_IMAGE } from '../../src/devcluster/containerd/config.ts';
import { startContainerd, type PrivateRuntime } from '../harness/containerd.ts';
import { missingContainerds } from '../harness/containerd-binaries.ts';
import { bareSandboxConfig } from '../harness/pods.ts';
import { TestRegistry } from '../harness/registry.ts';
import { timePasses } from '../harness/until.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const forever = new AbortController().signal;

type Reading = { readonly atMs: number; readonly sentBytes: number; readonly progress: PullProgress };

/** What was said in the middle of the pull is right within a fifth. The truth is what the registry sent, and how fast. */
function checkReadings(readings: readonly Reading[], total: number): void {
  const middle = readings.filter(({ sentBytes }) => sentBytes > total * 0.4 && sentBytes < total * 0.7);
  const [first] = readings;
  assert.ok(first !== undefined && middle.length > 0, `${readings.length} readings`);
  const close = (what: string, got: number | undefined, truth: number): void =>
    assert.ok(got !== undefined && Math.abs(got - truth) <= truth * 0.2, `${what}: ${got} instead of ${truth}`);
  for (const { atMs, sentBytes, progress } of middle) {
    const rate = ((sentBytes - first.sentBytes) * 1000) / (atMs - first.atMs);
    const size = progress.layers.reduce((sum, layer) => sum + layer.totalBytes, 0);
    assert.equal(progress.source, 'layers');
    assert.equal(progress.totalBytes, size);
    close('size', size, total);
    close('done', progress.doneBytes, sentBytes);
    close('rate', progress.bytesPerSecond, rate);
    close('time left', progress.remainingSeconds, (size - sentBytes) / rate);
  }
}

/** As usual, on a shorter scale. */
const REPORTS = { everyMs: 1000, longMs: 2000 };

const VERSIONS = ['1.6', '2.1'] as const;
const missing = await missingContainerds(VERSIONS);
for (const version of VERSIONS) {
  describe(`images on containerd ${version}`, { skip: missing.get(version) ?? false }, () => {
    let containerd: PrivateRuntime;
    let puller: ImagePuller;
    let records: PullRecords;
    let meter: PullMeter;
    let channel: GrpcChannel;
    const open = new TestRegistry();
    const closed = new TestRegistry({ username: 'reader', password: 'hunter2' });
    const root = temporaryFolder('kts-images-');
    const events: string[] = [];
    const waiting: { readonly atMs: number; readonly message: string }[] = [];
    const recorder = {
      pod: (_: Pod, type: string, reason: string, message: string): void =>
        void events.push(`${type} ${reason} ${message}`),
      node: (): void => undefined,
    };
    const infra = { clock: systemClock, log: silentLogger, registry: new Registry() };

    before(async () => {
      await Promise.all([open.start(), closed.start()]);
      containerd = await startContainerd({ version });
      const credentials = new Credentials(
        { ...infra, serviceAccountOf: async () => undefined },
        { rootDir: root, workingDir: root, homeDir: undefined, providers: [], providerBinDir: '' },
      );
      records = new PullRecords(infra, root);
      channel = new GrpcChannel(systemClock, { target: { socketPath: containerd.socketPath } });
      meter = new PullMeter({ ...infra, content: new ContainerdContent(channel), freeBytes: async () => 0 });
      puller = new ImagePuller(
        {
          ...infra,
          images: containerd.images,
          credentials,
          records,
          events: recorder,
          meter,
          onWaiting: (_pod, container, message) =>
            void waiting.push({ atMs: systemClock.monotonic(), message: `${container}: ${message}` }),
        },
        {
          reports: REPORTS,
          serialize: false,
          maxParallel: undefined,
          qps: 0,
          burst: 0,
          verifyAccess: true,
          verification: 'NeverVerifyPreloadedImages',
          allowlist: [],
          sendRuntimeHandler: false,
        },
      );
      await puller.prepare(forever);
    });
    after(async () => {
      channel?.close();
      await Promise.all([open.stop(), closed.stop(), containerd?.stop()]);
    });

    const ensure = (image: string, policy: ImageRequest['policy'], pullSecrets: Secret[] = [], uid = 'u') =>
      puller.ensure(
        {
          pod: { metadata: { name: 'p', namespace: 'n', uid }, spec: { containers: [] } },
          fieldPath: 'spec.containers{c}',
          image,
          policy,
          pullSecrets,
          sandboxConfig: bareSandboxConfig(root, 'p', uid),
          runtimeHandler: '',
        },
        forever,
      );
    const secret = (password: string): Secret => {
      const auths = { [closed.host]: { username: 'reader', password } };
      const data = Buffer.from(JSON.stringify({ auths })).toString('base64');
      return {
        metadata: { name: `s-${password.length}`, namespace: 'n', uid: `uid-${password.length}` },
        type: 'kubernetes.io/dockerconfigjson',
        data: { '.dockerconfigjson': data },
      };
    };

    it('pulls once for three pods, then finds the image present', async () => {
      const ref = open.add('team/app', 'v1', { user: '1000', extraBytes: 300_000 });
      open.delayMs = 20;
      const all = await Promise.all(['a', 'b', 'c'].map((uid) => ensure(ref, 'IfNotPresent', [], uid)));
      open.delayMs = 0;
      assert.equal(new Set(all.map((e) => e.imageRef)).size, 1);
      assert.equal(all[0]?.image?.uid?.value, 1000);
      const blobs = open.requests.filter((r) => r.includes('/blobs/'));
      assert.equal(new Set(blobs).size, blobs.length, 'no blob was fetched twice');
      const size = all[0]?.image?.size ?? 0;
      assert.equal(events.filter((e) => e.endsWith(`including waiting). Image size: ${size} bytes.`)).length, 3);
      const before = open.requests.length;
      await ensure(ref, 'IfNotPresent');
      await ensure(ref, 'Never');
      assert.equal(open.requests.length, before);
    });

    it('needs the right secret, tries the next one, and lets nobody else use the image', async () => {
      const ref = closed.add('private', 'v1', { extraBytes: 1000 });
      await assert.rejects(ensure(ref, 'IfNotPresent', [], 'anonymous'), { reason: 'ErrImagePull' });
      await ensure(ref, 'IfNotPresent', [secret('wrong'), secret('hunter2')]);
      await ensure(ref, 'Never', [secret('hunter2')], 'again');
      await assert.rejects(ensure(ref, 'Never', [], 'stranger'), { reason: 'ErrImageNeverPull' });
      await assert.rejects(ensure(ref, 'IfNotPresent', [secret('wrong')], 'thief'), { reason: 'ErrImagePull' });
      assert.ok(events.every((e) => !e.includes('hunter2')));
    });

    it('words a refused connection and a missing image as recorded, then backs off', async () => {
      const refused = '127.0.0.1:1/none/none:v1';
      const expected = new RegExp(
        `^failed to pull and unpack image "${refused}": failed to resolve (image|reference "${refused}"): failed to do request: Head "https?://127.0.0.1:1/v2/none/none/manifests/v1": dial tcp 127.0.0.1:1: connect: connection refused$`,
      );
      await assert.rejects(ensure(refused, 'IfNotPresent'), { reason: 'ErrImagePull', message: expected });
      await assert.rejects(ensure(refused, 'IfNotPresent'), (err: Error & { reason: string }) => {
        assert.equal(err.reason, 'ImagePullBackOff');
        return err.message.startsWith(`Back-off pulling image "${refused}": ErrImagePull: failed to pull`);
      });
      const missing = ensure(`${open.host}/missing:v1`, 'IfNotPresent');
      await assert.rejects(missing, { reason: 'ErrImagePull', message: /^rpc error: code = NotFound desc = / });
    });

    it('measures a pull while it lasts', async () => {
      const slow = new TestRegistry();
      await slow.start();
      const total = 40e6;
      const ref = slow.add('team/large', 'v1', { extraBytes: total });
      slow.bytesPerSecond = 5e6;
      const pull = ensure(ref, 'IfNotPresent', [], 'slow');
      const readings: Reading[] = [];
      try {
        while (await Promise.race([pull.then(() => false), timePasses(500, 'measuring').then(() => true)])) {
          const before = slow.sentBytes;
          await meter.read(forever);
          const progress = puller.pulls()[0]?.progress;
          const sentBytes = (before + slow.sentBytes) / 2;
          if (progress !== undefined) readings.push({ atMs: systemClock.monotonic(), sentBytes, progress });
        }
      } finally {
        await slow.stop();
      }
      assert.equal(await pull.then(() => puller.pulls().length), 0);
      checkReadings(readings, total);
      const told = events.filter((e) => e.includes('PullProgress') && e.includes(ref));
      const percents = told.map((e) => Number(/: (\d+) % of 4\d(?:\.\d)? MB, .* left$/.exec(e)?.[1]));
      assert.equal(percents.length, 3, told.join('\n'));
      for (const [i, quarter] of [25, 50, 75].entries())
        assert.ok((percents[i] ?? 0) >= quarter && (percents[i] ?? 0) < quarter + 25, told.join('\n'));
      const messages = waiting.filter(({ message }) => message.startsWith(`c: Pulling image "${ref}": `));
      assert.ok(messages.length >= 3, `${messages.length} messages`);
      for (const [i, { atMs }] of messages.entries())
        assert.ok(i === 0 || atMs - (messages[i - 1]?.atMs ?? 0) >= REPORTS.everyMs - 1, 'not more often');
    });

    it('collects what is unused and keeps the sandbox image', async () => {
      const ref = open.add('garbage', 'v1', { extraBytes: 5000 });
      const { imageRef } = await ensure(ref, 'Always');
      const disk = await imageFilesystem(containerd.images, forever);
      assert.ok(disk.capacityBytes > disk.availableBytes && disk.availableBytes > 0);
      const sandboxImage = await readSandboxImage(containerd.runtime, forever);
      assert.equal(sandboxImage, version === '2.1' ? undefined : SANDBOX_IMAGE);
      const keep = sandboxImage === undefined ? [] : [sandboxImage];
      const gc = new ImageGc(
        {
          images: containerd.images,
          observed: { ready: true, all: () => [] },
          desired: { all: () => [] },
          records,
          disk: async () => ({ capacityBytes: 1000, availableBytes: 0 }),
          events: recorder,
          infra: { ...infra, registry: new Registry() },
        },
        { highThresholdPercent: 85, lowThresholdPercent: 80, minAgeMs: 0, maxAgeMs: 0, keep },
      );
      assert.ok(records.recordOf(imageRef) !== undefined);
      await gc.collect(forever);
      await gc.deleteUnused(forever);
      const { image } = await containerd.images.imageStatus({ image: { image: ref } }, forever);
      assert.equal(image, undefined);
      const left = (await containerd.images.listImages({}, forever)).images.map((i) => i.repoTags[0]);
      assert.deepEqual(left, [SANDBOX_IMAGE]);
    });
  });
}
