import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import type { AuthConfig, Image, PullImageRequest } from '../cri/gen/cri.ts';
import type { CriImages } from '../cri/services.ts';
import type { Pod } from '../core/pod.ts';
import { podUid } from '../core/ids.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import type { VerificationPolicy } from './access.ts';
import { ImagePuller, type ImageRequest } from './image-puller.ts';
import type { Credential } from './keyring.ts';
import { PullRecords } from './pull-records.ts';

const forever = new AbortController().signal;
const roots: string[] = [];
after(() => roots.forEach((r) => rmSync(r, { recursive: true, force: true })));

const imageOf = (id: string, ref: string): Image => ({
  id,
  repoTags: [ref],
  repoDigests: [],
  size: 1234,
  username: '',
  pinned: false,
});
const podOf = (uid: string): Pod => ({
  metadata: { name: 'p', namespace: 'n', uid, annotations: { note: 'x' } },
  spec: { containers: [] },
});
const secretLogin = (password: string, name = 's'): Credential => ({
  username: 'u',
  password,
  source: { from: 'secret', uid: `uid-${name}`, namespace: 'n', name },
});

type Setup = {
  verifyAccess?: boolean;
  verification?: VerificationPolicy;
  serialize?: boolean;
  maxParallel?: number;
  qps?: number;
  burst?: number;
};

async function setup(options: Setup = {}) {
  const root = mkdtempSync(join(tmpdir(), 'kts-images-'));
  roots.push(root);
  const clock = new ManualClock();
  const store = new Map<string, Image>();
  const pulls: PullImageRequest[] = [];
  const control: {
    pull: (auth: AuthConfig | undefined) => Promise<void>;
    status: Error | undefined;
    answerDigests: boolean;
  } = { pull: async () => undefined, status: undefined, answerDigests: false };
  const find = (name: string): Image | undefined =>
    [...store.values()].find((i) => i.id === name || i.repoTags.includes(name) || i.repoDigests.includes(name));
  const images = {
    imageStatus: async ({ image }: { image: { image: string } }) => {
      if (control.status !== undefined) throw control.status;
      return { image: find(image.image), info: {} };
    },
    pullImage: async (request: PullImageRequest) => {
      pulls.push(request);
      await control.pull(request.auth);
      const ref = request.image?.image ?? '';
      const image = find(ref) ?? imageOf(`sha256:${store.size}`, ref);
      const digest = `${ref.replace(/:[^:]*$/, '')}@sha256:${'d'.repeat(64)}`;
      store.set(image.id, { ...image, repoDigests: [digest] });
      return { imageRef: control.answerDigests ? digest : image.id };
    },
  } as unknown as CriImages;
  const events: string[] = [];
  const credentials: { list: Credential[] } = { list: [] };
  const logged: string[] = [];
  const log = {
    ...silentLogger,
    warn: (message: string, fields?: Record<string, unknown>) =>
      void logged.push(`${message}: ${String(fields?.['why'])}`),
  };
  const records = new PullRecords({ clock, log }, root);
  const registry = new Registry();
  const puller = new ImagePuller(
    {
      images,
      credentials: { forImage: async () => credentials.list },
      records,
      events: {
        pod: (_pod, type, reason, message, o) => events.push(`${type} ${reason} ${o?.fieldPath}: ${message}`),
        node: () => undefined,
      },
      clock,
      log,
      registry,
    },
    {
      serialize: options.serialize ?? true,
      maxParallel: options.maxParallel,
      qps: options.qps ?? 0,
      burst: options.burst ?? 10,
      verifyAccess: options.verifyAccess ?? true,
      verification: options.verification ?? 'NeverVerifyPreloadedImages',
      allowlist: [],
      sendRuntimeHandler: false,
    },
  );
  await puller.prepare(forever);
  const ensure = (image: string, policy: ImageRequest['policy'], uid = 'u', signal = forever) =>
    puller.ensure(
      {
        pod: podOf(uid),
        fieldPath: 'spec.containers{c}',
        image,
        policy,
        pullSecrets: [],
        sandboxConfig: {},
        runtimeHandler: 'h',
      },
      signal,
    );
  /** Records go to a real disk: waits until so many pulls have reached the runtime. */
  const reached = async (count: number): Promise<void> => {
    while (pulls.length < count) await new Promise((resolve) => setTimeout(resolve, 1));
    await clock.advance(0);
  };
  const said = (): string[] => events.splice(0).map((e) => e.replace(' spec.containers{c}', ''));
  return { root, clock, store, pulls, logged, control, credentials, records, registry, puller, ensure, reached, said };
}

const unknown = (text: string): GrpcError => new GrpcError(GrpcCode.Unknown, text);

describe('ImagePuller', () => {
  it('takes a present image without pulling', async () => {
    const t = await setup();
    t.store.set('sha256:a', imageOf('sha256:a', 'reg.io/a:v1'));
    for (const policy of ['IfNotPresent', 'Never'] as const) {
      const ensured = await t.ensure('reg.io/a:v1', policy);
      assert.deepEqual([ensured.imageRef, ensured.image?.size], ['sha256:a', 1234]);
      assert.deepEqual(t.said(), [
        'Normal Pulled: Container image "reg.io/a:v1" already present on machine and can be accessed by the pod',
      ]);
    }
    assert.deepEqual(t.pulls, []);
  });

  it('pulls an absent one, with the tag, the pod’s annotations and its times', async () => {
    const t = await setup();
    t.control.pull = () => t.clock.sleep(1234.9, forever);
    const ensured = t.ensure('reg.io/a', 'IfNotPresent');
    await t.reached(1);
    await t.clock.advance(1234.9);
    assert.deepEqual((await ensured).imageRef, 'sha256:0');
    assert.deepEqual(t.said(), [
      'Normal Pulling: Pulling image "reg.io/a"',
      'Normal Pulled: Successfully pulled image "reg.io/a" in 1.234s (1.234s including waiting). Image size: 1234 bytes.',
    ]);
    const [request] = t.pulls;
    assert.deepEqual(request?.image, { image: 'reg.io/a:latest', annotations: { note: 'x' }, runtimeHandler: '' });
    assert.equal(request?.auth, undefined);
  });

  it('counts the wait for its turn as part of a pull, and what was asked for', async () => {
    const t = await setup();
    t.control.pull = () => t.clock.sleep(1_000, forever);
    const both = Promise.all([t.ensure('reg.io/a', 'Always'), t.ensure('reg.io/b', 'IfNotPresent')]);
    for (const count of [1, 2]) {
      await t.reached(count);
      await t.clock.advance(1_000);
    }
    await both;
    await assert.rejects(t.ensure('reg.io/c', 'Never'));
    const shown = t.registry.render();
    assert.match(shown, /kubelet_image_pull_duration_seconds_sum\{[^}]*\} 3\n/);
    assert.match(shown, /present_locally="false",pull_policy="never",pull_required="unknown"\} 1/);
  });

  it('tells before it asks a registry, not for a look at what is here nor in a back-off', async () => {
    const t = await setup();
    t.store.set('sha256:a', imageOf('sha256:a', 'reg.io/a:v1'));
    let told = 0;
    const base = { pod: podOf('u'), fieldPath: '', pullSecrets: [], sandboxConfig: {}, runtimeHandler: '' };
    const ensure = (image: string) =>
      t.puller.ensure({ ...base, image, policy: 'IfNotPresent', onPull: () => void told++ }, forever);
    await ensure('reg.io/a:v1');
    assert.equal(told, 0);
    t.control.pull = () => {
      assert.equal(told, 1);
      return Promise.reject(unknown('no such host'));
    };
    await assert.rejects(ensure('reg.io/b:v1'), { reason: 'ErrImagePull' });
    await assert.rejects(ensure('reg.io/b:v1'), { reason: 'ImagePullBackOff' });
    assert.equal(told, 1);
  });

  it('says what is wrong with a name, and with Never', async () => {
    const t = await setup();
    const text =
      'Failed to apply default image tag "INVALID::image": couldn\'t parse image name "INVALID::image": invalid reference format: repository name (library/INVALID) must be lowercase';
    await assert.rejects(t.ensure('INVALID::image', 'Always'), { reason: 'InvalidImageName', message: text });
    assert.deepEqual(t.said(), [`Warning InspectFailed: ${text}`]);
    const never = 'Container image "localhost/none:v1" is not present with pull policy of Never';
    await assert.rejects(t.ensure('localhost/none:v1', 'Never'), { reason: 'ErrImageNeverPull', message: never });
    assert.deepEqual(t.said(), [`Warning ErrImageNeverPull: ${never}`]);
  });

  it('reports a runtime that cannot look the image up', async () => {
    const t = await setup();
    t.control.status = new GrpcError(GrpcCode.Unavailable, 'away');
    const text = 'Failed to inspect image "": rpc error: code = Unavailable desc = away';
    await assert.rejects(t.ensure('a:1', 'IfNotPresent'), { reason: 'ImageInspectError', message: text });
    assert.deepEqual(t.said(), [`Warning InspectFailed: ${text}`]);
  });

  it('backs off per pod and image: 10 s, 20 s, … and tells when to come back', async () => {
    const t = await setup();
    t.control.pull = () => Promise.reject(unknown('no such host'));
    const uid = podUid('u');
    for (const waitMs of [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]) {
      const begun = t.clock.now();
      const failed = { reason: 'ErrImagePull', message: 'no such host', retryAt: begun + 5000 };
      await assert.rejects(t.ensure('a:1', 'Always'), failed, 'looked at again to say that it is backed off');
      assert.deepEqual(t.said(), [
        'Normal Pulling: Pulling image "a:1"',
        'Warning Failed: Failed to pull image "a:1": no such host',
      ]);
      assert.equal(t.puller.nextRetryAt(uid), t.clock.monotonic() + waitMs);
      await t.clock.advance(waitMs - 1);
      const message = 'Back-off pulling image "a:1": ErrImagePull: no such host';
      await assert.rejects(t.ensure('a:1', 'Always'), { reason: 'ImagePullBackOff', message, retryAt: begun + waitMs });
      assert.deepEqual(t.said(), ['Normal BackOff: Back-off pulling image "a:1"']);
      await t.clock.advance(1);
      assert.equal(t.puller.nextRetryAt(uid), undefined);
    }
    const others = t.ensure('a:1', 'Always', 'other');
    await assert.rejects(others, { reason: 'ErrImagePull' });
    assert.equal(t.pulls.length, 8);
    t.puller.forgetPod(podUid('other'));
    assert.equal(t.puller.nextRetryAt(podUid('other')), undefined);
  });

  it('starts over after a long quiet time', async () => {
    const t = await setup();
    t.control.pull = () => Promise.reject(unknown('x'));
    for (const waitMs of [10_000, 20_000, 600_001]) {
      await assert.rejects(t.ensure('a:1', 'Always'));
      await t.clock.advance(waitMs);
    }
    await assert.rejects(t.ensure('a:1', 'Always'));
    assert.equal(t.puller.nextRetryAt(podUid('u')), t.clock.monotonic() + 10_000);
  });

  it('keeps the code of failures that have one, and knows the two special kinds', async () => {
    const rows = [
      [new GrpcError(GrpcCode.NotFound, 'gone'), 'ErrImagePull', 'rpc error: code = NotFound desc = gone'],
      [
        unknown('RegistryUnavailable: 503'),
        'RegistryUnavailable',
        'image pull failed for a:1 because the registry is unavailable: 503',
      ],
      [
        unknown('SignatureValidationFailed'),
        'SignatureValidationFailed',
        'image pull failed for a:1 because the signature validation failed',
      ],
    ] as const;
    for (const [error, reason, message] of rows) {
      const t = await setup();
      t.control.pull = () => Promise.reject(error);
      await assert.rejects(t.ensure('a:1', 'Always'), { reason, message });
    }
  });

  it('tries every credential, and tells all distinct failures', async () => {
    const t = await setup();
    t.credentials.list = [secretLogin('one'), secretLogin('two'), secretLogin('three')];
    t.control.pull = (auth) => Promise.reject(unknown(auth?.password === 'one' ? 'first' : 'other'));
    await assert.rejects(t.ensure('a:1', 'Always'), { message: '[first, other]' });
    await t.clock.advance(10_000);
    t.control.pull = async (auth) => {
      if (auth?.password !== 'two') throw unknown('denied');
    };
    await t.ensure('a:1', 'Always');
    assert.deepEqual(
      t.pulls.slice(3).map((p) => p.auth?.password),
      ['one', 'two'],
    );
  });

  it('refuses pulls above the allowed rate', async () => {
    const t = await setup({ qps: 1, burst: 1 });
    await t.ensure('a:1', 'Always');
    await assert.rejects(t.ensure('b:1', 'Always'), { reason: 'ErrImagePull', message: 'pull QPS exceeded' });
  });
});

describe('pull queue', () => {
  const gate = () => {
    const waiting: (() => void)[] = [];
    let running = 0;
    let most = 0;
    const pass = async (): Promise<void> => {
      most = Math.max(most, ++running);
      await new Promise<void>((resolve) => waiting.push(resolve));
      running--;
    };
    return { pass, release: () => waiting.splice(0).forEach((go) => go()), most: () => most };
  };

  for (const [name, options, most] of [
    ['one at a time', { serialize: true }, 1],
    ['two at a time', { serialize: false, maxParallel: 2 }, 2],
    ['as many as there are', { serialize: false }, 5],
  ] as const)
    it(name, async () => {
      const t = await setup(options);
      const g = gate();
      t.control.pull = g.pass;
      const all = Promise.all([1, 2, 3, 4, 5].map((n) => t.ensure(`a:${n}`, 'Always', `u${n}`)));
      await t.reached(most);
      const phases = t.puller.pulls().map((p) => p.phase);
      assert.deepEqual([phases.filter((p) => p === 'pulling').length, phases.length], [most, 5]);
      for (let n: number = most; n < 5; n = Math.min(n + most, 5)) {
        g.release();
        await t.reached(Math.min(n + most, 5));
      }
      g.release();
      await all;
      assert.equal(g.most(), most);
      assert.deepEqual(t.puller.pulls(), []);
    });

  it('says what a pod waits for', async () => {
    const t = await setup();
    const g = gate();
    t.control.pull = g.pass;
    const all = [t.ensure('a:1', 'Always', 'x'), t.ensure('b:1', 'Always', 'y')];
    await t.reached(1);
    await t.clock.advance(3500);
    const since = t.clock.now() - 3500;
    const of = { namespace: 'n', pod: 'p', sinceMs: since };
    assert.deepEqual(t.puller.pulls(), [
      { ...of, podUid: 'x', image: 'a:1', phase: 'pulling', pullingSinceMs: since },
      { ...of, podUid: 'y', image: 'b:1', phase: 'queued', ahead: 1 },
    ]);
    g.release();
    await t.reached(2);
    g.release();
    await Promise.all(all);
  });

  it('tells the log of a pull that takes long, ever more rarely', async () => {
    const t = await setup();
    const g = gate();
    t.control.pull = g.pass;
    const all = [t.ensure('a:1', 'Always', 'x'), t.ensure('b:1', 'Always', 'y')];
    await t.reached(1);
    await t.clock.advance(9_000);
    assert.equal(t.logged.length, 0);
    await t.clock.advance(30_000);
    const long = 'a pod waits long for an image: ';
    assert.deepEqual(
      t.logged.filter((l) => l.includes('a:1')),
      [`${long}Pulling image "a:1": 10 s so far`, `${long}Pulling image "a:1": 20 s so far`],
    );
    assert.ok(t.logged.includes(`${long}Image "b:1" waits behind 1 other pulls, 10 s so far`));
    g.release();
    await t.reached(2);
    g.release();
    await Promise.all(all);
    assert.equal(t.clock.pending, 0);
  });

  it('shares one pull among all who want the same with the same credentials', async () => {
    const t = await setup({ serialize: false });
    const g = gate();
    t.control.pull = g.pass;
    const all = Promise.all(['x', 'y', 'z'].map((uid) => t.ensure('a:1', 'Always', uid)));
    t.credentials.list = [secretLogin('other')];
    const other = t.ensure('a:1', 'Always', 'w');
    await t.reached(2);
    assert.equal(t.pulls.length, 2);
    g.release();
    const refs = (await all).map((e) => e.imageRef);
    assert.equal(new Set(refs).size, 1);
    await other;
    assert.equal(t.said().filter((e) => e.startsWith('Normal Pulled')).length, 4);
  });

  it('cancels a pull when its last waiter leaves, without back-off', async () => {
    const t = await setup();
    let cancelled = false;
    t.control.pull = () => new Promise(() => undefined);
    const [a, b] = [new AbortController(), new AbortController()];
    const calls = [a, b].map((c, i) => t.ensure('a:1', 'Always', `u${i}`, c.signal));
    await t.reached(1);
    a.abort(new Error('left'));
    await assert.rejects(calls[0] as Promise<unknown>, { message: 'left' });
    assert.equal(t.puller.pulls().length, 1);
    b.abort(new Error('left too'));
    await assert.rejects(calls[1] as Promise<unknown>, { message: 'left too' });
    cancelled = t.puller.pulls().length === 0;
    assert.ok(cancelled);
    assert.equal(t.puller.nextRetryAt(podUid('u1')), undefined);
  });
});

describe('pull records', () => {
  it('ask the next pod for credentials, and are files as upstream writes them', async () => {
    const t = await setup();
    t.credentials.list = [secretLogin('one')];
    await t.ensure('reg.io/a:1', 'IfNotPresent');
    const dir = join(t.root, 'image_manager', 'pulled');
    const [name = ''] = readdirSync(dir);
    assert.match(name, /^sha256-[0-9a-f]{64}$/);
    assert.equal(statSync(join(dir, name)).mode & 0o777, 0o600);
    assert.equal(statSync(dir).mode & 0o777, 0o700);
    const text = readFileSync(join(dir, name), 'utf8');
    const record = JSON.parse(text) as Record<string, unknown>;
    assert.deepEqual(
      [record['kind'], record['apiVersion'], record['imageRef']],
      ['ImagePulledRecord', 'kubelet.config.k8s.io/v1beta1', 'sha256:0'],
    );
    assert.ok(!text.includes('"one"'));
    assert.deepEqual(readdirSync(join(t.root, 'image_manager', 'pulling')), []);

    t.credentials.list = [];
    await t.ensure('reg.io/a:1', 'IfNotPresent', 'stranger');
    assert.equal(t.pulls.length, 2, 'a pod without the secret has to prove access');
    t.credentials.list = [secretLogin('two', 'else')];
    const never = t.ensure('reg.io/a:1', 'Never', 'v');
    assert.equal((await never).imageRef, 'sha256:0', 'the anonymous pull opened it to all');
  });

  it('know an image by its id, though the runtime answers pulls with a digest, as CRI-O did', async () => {
    const t = await setup();
    t.control.answerDigests = true;
    t.credentials.list = [secretLogin('one')];
    assert.match((await t.ensure('reg.io/a:1', 'IfNotPresent')).imageRef, /@sha256:d/);
    assert.equal((await t.ensure('reg.io/a:1', 'IfNotPresent', 'v')).imageRef, 'sha256:0');
    assert.equal(t.pulls.length, 1, 'the record is found');
    t.credentials.list = [];
    await assert.rejects(t.ensure('reg.io/a:1', 'Never', 'stranger'), { reason: 'ErrImageNeverPull' });
  });

  it('know an image by the name in the pod, as the Go kubelet does, and by its full name, as older records do', async () => {
    const t = await setup();
    await t.ensure('busybox', 'IfNotPresent');
    assert.deepEqual(Object.keys(t.records.recordOf('sha256:0')?.credentialMapping ?? {}), ['busybox']);
    await t.ensure('busybox', 'Never', 'v');
    t.store.set('sha256:f', imageOf('sha256:f', 'app:1'));
    await t.records.allow('sha256:f', 'docker.io/library/app', { nodePodsAccessible: true });
    await t.ensure('app:1', 'Never');
  });

  it('forbid Never without the secret, and do not tell that the image is here', async () => {
    const t = await setup();
    t.credentials.list = [secretLogin('one')];
    await t.ensure('reg.io/a:1', 'IfNotPresent');
    t.credentials.list = [];
    const message = 'Container image "reg.io/a:1" is not present with pull policy of Never';
    await assert.rejects(t.ensure('reg.io/a:1', 'Never'), { reason: 'ErrImageNeverPull', message });
  });

  it('survive a restart, and an interrupted pull counts as ours with nobody’s credentials', async () => {
    const t = await setup();
    t.credentials.list = [secretLogin('one')];
    await t.ensure('reg.io/a:1', 'IfNotPresent');
    await t.records.begin('reg.io/b:1');
    await t.records.begin('reg.io/c:1');
    const again = new PullRecords({ clock: t.clock, log: silentLogger }, t.root);
    await again.load(async (image) => (image === 'reg.io/b:1' ? 'sha256:b' : undefined));
    assert.ok(again.recordOf('sha256:0')?.credentialMapping['reg.io/a']?.kubernetesSecrets?.length === 1);
    assert.deepEqual(again.recordOf('sha256:b')?.credentialMapping, {});
    assert.ok(again.ours('reg.io/c:1', 'sha256:c'));
    assert.deepEqual([again.records, again.intents], [2, 1]);
    await again.prune(new Set(['sha256:b']), t.clock.now() + 10_000);
    assert.deepEqual([again.records, readdirSync(join(t.root, 'image_manager', 'pulled')).length], [1, 1]);
  });

  it('are not asked for when the gate is off', async () => {
    const t = await setup({ verifyAccess: false, verification: 'AlwaysVerify' });
    t.store.set('sha256:a', imageOf('sha256:a', 'reg.io/a:v1'));
    await t.ensure('reg.io/a:v1', 'IfNotPresent');
    assert.deepEqual(t.said(), ['Normal Pulled: Container image "reg.io/a:v1" already present on machine']);
  });

  it('pull again when verification is always wanted and nobody pulled it', async () => {
    const t = await setup({ verification: 'AlwaysVerify' });
    t.store.set('sha256:a', imageOf('sha256:a', 'reg.io/a:v1'));
    await t.ensure('reg.io/a:v1', 'IfNotPresent');
    assert.equal(t.pulls.length, 1);
    await t.ensure('reg.io/a:v1', 'IfNotPresent');
    assert.equal(t.pulls.length, 1);
  });
});
