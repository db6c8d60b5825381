// Security, mounts, labels and logs of a container.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Container, Pod, PodSpec, SeccompProfile, VolumeMount } from '../core/pod.ts';
import { containerConfig } from './container-config.ts';
import { containerHash } from './container-hash.ts';
import { containerAnnotations, restoredContainer, restoredPod } from './labels.ts';
import { restartCountFromLogs } from './log-paths.ts';
import { blockDevices, subPathOf, volumeMounts } from './mounts.ts';
import { namespaceOptions } from './namespaces.ts';
import { sandboxConfig } from './sandbox-config.ts';
import { containerSecurityContext, verifyRunAsNonRoot } from './security-context.ts';
import { facts } from '../../test/golden/fixture.ts';

const podOf = (spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u', ...metadata },
  spec: { containers: [{ name: 'a' }], enableServiceLinks: true, ...spec },
});
const FACTS = facts('/r');

describe('container hash', () => {
  for (const [name, image, hash] of [
    ['test_container', 'foo/image:v1', '8e45cbd0'],
    ['a', 'localhost/busybox:latest', 'd115152'],
    ['c', 'localhost/busybox:latest', '69b5adb8'],
  ] as const)
    it(`${name} ${image}`, () => assert.equal(containerHash({ name, image }), hash));
});

describe('security', () => {
  const input = { image: {}, extraGroups: [5], userns: undefined };
  it('who it runs as', () => {
    const run = (
      spec: Partial<PodSpec>,
      c: Partial<Container>,
      image: { uid?: number; username?: string },
    ): unknown => {
      const got = containerSecurityContext(podOf(spec), { name: 'a', ...c }, { ...input, image }, FACTS);
      return got.runAsUsername ?? got.runAsUser?.value;
    };
    assert.equal(run({}, {}, {}), 0);
    assert.equal(run({}, {}, { uid: 7 }), 7);
    assert.equal(run({}, {}, { username: 'joe' }), 'joe');
    assert.equal(run({ securityContext: { runAsUser: 8 } }, {}, { uid: 7 }), 8);
    assert.equal(run({ securityContext: { runAsUser: 8 } }, { securityContext: { runAsUser: 0 } }, {}), 0);
  });
  it('groups in their order', () => {
    const pod = podOf({ securityContext: { fsGroup: 1, supplementalGroups: [2] } });
    assert.deepEqual(containerSecurityContext(pod, { name: 'a' }, input, FACTS).supplementalGroups, [1, 2, 5]);
    const sandbox = sandboxConfig(
      {
        pod,
        attempt: 0,
        dns: { servers: [], searches: [], options: [] },
        cgroupParent: '',
        extraGroups: [5],
        userns: undefined,
      },
      FACTS,
    );
    assert.deepEqual(sandbox.linux?.securityContext?.supplementalGroups, [1, 5, 2]);
  });
  it('seccomp never fails open', () => {
    const profile = (seccompProfile: object) => (): unknown =>
      containerSecurityContext(
        podOf({ securityContext: { seccompProfile: seccompProfile as SeccompProfile } }),
        { name: 'a' },
        input,
        FACTS,
      );
    assert.throws(profile({ type: 'Localhost' }), /localhostProfile must be set/);
    assert.throws(profile({ type: 'Localhost', localhostProfile: '' }), /localhostProfile must be set/);
    for (const outside of ['../x', 'a/../../x', '/etc/x', '.', 'a/..'])
      assert.throws(profile({ type: 'Localhost', localhostProfile: outside }), /is outside of \/r\/seccomp/, outside);
    assert.throws(profile({ type: 'Strictest' }), /"Strictest" is not supported/);
    assert.throws(profile({ type: '' }), /is not supported/);
    assert.throws(profile({ type: null }), /is not supported/);
    const nameless = { type: 'Localhost' as const, localhostProfile: '' };
    const named = { name: 'a', securityContext: { appArmorProfile: nameless } };
    assert.throws(() => containerSecurityContext(podOf(), named, input, FACTS), /appArmorProfile type is Localhost/);
  });

  it('seccomp and AppArmor', () => {
    const of = (c: Container['securityContext'], f = FACTS): ReturnType<typeof containerSecurityContext> =>
      containerSecurityContext(podOf(), { name: 'a', ...(c === undefined ? {} : { securityContext: c }) }, input, f);
    assert.deepEqual(of(undefined).seccomp, { profileType: 1 });
    assert.deepEqual(of(undefined, { ...FACTS, seccompDefault: true }).seccomp, { profileType: 0 });
    assert.deepEqual(of({ seccompProfile: { type: 'Localhost', localhostProfile: 'x.json' } }).seccomp, {
      profileType: 2,
      localhostRef: '/r/seccomp/x.json',
    });
    assert.deepEqual(
      of({ appArmorProfile: { type: 'Localhost', localhostProfile: 'x' } }).apparmorProfile,
      'localhost/x',
    );
    assert.equal(of(undefined).apparmor, undefined);
    assert.deepEqual(of({ procMount: 'Unmasked' }).maskedPaths, []);
  });
  it('AppArmor by annotation', () => {
    const pod = podOf({}, { annotations: { 'container.apparmor.security.beta.kubernetes.io/a': 'runtime/default' } });
    assert.equal(containerSecurityContext(pod, { name: 'a' }, input, FACTS).apparmorProfile, 'runtime/default');
    // It is about the container, and as such before what is set for the pod.
    const open = { type: 'Unconfined' as const };
    const both = podOf({ securityContext: { appArmorProfile: open } }, pod.metadata);
    assert.equal(containerSecurityContext(both, { name: 'a' }, input, FACTS).apparmorProfile, 'runtime/default');
    assert.equal(containerSecurityContext(both, { name: 'b' }, input, FACTS).apparmorProfile, 'unconfined');
  });
  it('not as root', () => {
    const refuse = (runAsUser: number | undefined, image: { uid?: number; username?: string }): void =>
      verifyRunAsNonRoot(
        podOf(),
        { name: 'a', securityContext: { runAsNonRoot: true, ...(runAsUser === undefined ? {} : { runAsUser }) } },
        image,
      );
    const where = ' \\(pod: "p_ns\\(u\\)", container: a\\)$';
    assert.throws(
      () => refuse(0, {}),
      new RegExp(`^KubeletError: container's runAsUser breaks non-root policy${where}`),
    );
    assert.throws(
      () => refuse(undefined, {}),
      new RegExp(`container has runAsNonRoot and image will run as root${where}`),
    );
    assert.throws(
      () => refuse(undefined, { username: 'joe' }),
      /image has non-numeric user \(joe\), cannot verify user is non-root/,
    );
    refuse(undefined, { uid: 5 });
    refuse(5, {});
  });
  it('namespaces', () => {
    assert.deepEqual(namespaceOptions(podOf({ hostPID: true }), undefined, 't').pid, 2);
    assert.deepEqual(namespaceOptions(podOf(), undefined, 't'), {
      network: 0,
      ipc: 0,
      pid: 3,
      targetId: 't',
      usernsOptions: { mode: 2 },
    });
    const one = [{ hostId: 65_536, containerId: 0, length: 65_536 }];
    assert.deepEqual(namespaceOptions(podOf(), { uids: one, gids: one }).usernsOptions, {
      mode: 0,
      uids: one,
      gids: one,
    });
  });
});

describe('mounts', () => {
  const volumes = new Map([
    ['v', { hostPath: '/h/v', readOnly: false, selinuxRelabel: true }],
    ['ro', { hostPath: '/h/ro', readOnly: true, selinuxRelabel: false }],
    ['dev', { hostPath: '', readOnly: true, selinuxRelabel: false, devicePath: '/dev/x' }],
  ]);
  const mounted = (
    mounts: Container['volumeMounts'],
    f = { selinux: false, recursiveReadOnly: true },
  ): ReturnType<typeof volumeMounts> =>
    volumeMounts(
      {
        container: { name: 'a', volumeMounts: mounts ?? [] },
        volumes,
        subPaths: new Map([[1, '/sub/1']]),
        images: new Map([['img', { image: 'sha' }]]),
        userns: undefined,
      },
      f,
    );

  it('read-only by mount or by volume, sub-paths, relative paths', () => {
    const got = mounted([
      { name: 'v', mountPath: '/a', readOnly: true },
      { name: 'v', mountPath: 'b' },
      { name: 'ro', mountPath: '/c' },
    ]);
    assert.deepEqual(
      got.map((m) => [m.containerPath, m.hostPath, m.readonly]),
      [
        ['/a', '/h/v', true],
        ['/b', '/sub/1', false],
        ['/c', '/h/ro', true],
      ],
    );
  });
  it('relabels a volume once', () =>
    assert.deepEqual(
      mounted(
        [
          { name: 'v', mountPath: '/a' },
          { name: 'v', mountPath: '/b' },
          { name: 'ro', mountPath: '/c' },
        ],
        { selinux: true, recursiveReadOnly: true },
      ).map((m) => m.selinuxRelabel),
      [true, false, false],
    ));
  for (const selinux of [false, true])
    it(`the files that the pod gets from us, ${selinux ? 'with' : 'without'} SELinux`, () => {
      const { mounts } = containerConfig(
        {
          pod: podOf(),
          container: { name: 'a', terminationMessagePath: selinux ? 'end' : '/end' },
          restartCount: 0,
          imageRef: 'i',
          imageUser: { username: '' },
          env: new Map(),
          volumes: new Map(),
          volumeMounts: [],
          hostsFile: '/h/hosts',
          terminationLog: '/h/end',
          additions: {},
          userns: undefined,
        },
        { ...FACTS, selinux },
      );
      assert.deepEqual(mounts, [
        { containerPath: '/etc/hosts', hostPath: '/h/hosts', selinuxRelabel: selinux },
        { containerPath: '/end', hostPath: '/h/end', selinuxRelabel: selinux },
      ]);
    });
  it('mounts of device plugins come before those of volumes, which are seen where both have the same path', () => {
    const { mounts = [] } = containerConfig(
      {
        pod: podOf(),
        container: { name: 'a' },
        restartCount: 0,
        imageRef: 'i',
        imageUser: { username: '' },
        env: new Map(),
        volumes: new Map(),
        volumeMounts: [{ containerPath: '/lib', hostPath: '/volume' }],
        hostsFile: '/h/hosts',
        terminationLog: undefined,
        additions: { mounts: ['/lib', '/etc/hosts'].map((path) => ({ containerPath: path, hostPath: '/plugin' })) },
        userns: undefined,
      },
      FACTS,
    );
    assert.deepEqual(
      mounts.map((m) => `${m.containerPath} ${m.hostPath}`),
      ['/lib /plugin', '/etc/hosts /plugin', '/lib /volume', '/etc/hosts /h/hosts'],
    );
  });
  it('mounts of device plugins belong to the users of the pod, too', () => {
    const ids = [{ hostId: 65_536, containerId: 0, length: 65_536 }];
    const { mounts } = containerConfig(
      {
        pod: podOf(),
        container: { name: 'a' },
        restartCount: 0,
        imageRef: 'i',
        imageUser: { username: '' },
        env: new Map(),
        volumes: new Map(),
        volumeMounts: [],
        hostsFile: undefined,
        terminationLog: undefined,
        additions: { mounts: [{ containerPath: '/dev/x', hostPath: '/dev/x' }] },
        userns: { uids: ids, gids: ids },
      },
      FACTS,
    );
    assert.deepEqual(mounts, [{ containerPath: '/dev/x', hostPath: '/dev/x', uidMappings: ids, gidMappings: ids }]);
  });
  it('propagation and recursive read-only', () => {
    const got = mounted([
      { name: 'v', mountPath: '/a', mountPropagation: 'Bidirectional' },
      { name: 'v', mountPath: '/b', mountPropagation: 'HostToContainer' },
      { name: 'v', mountPath: '/c', readOnly: true, recursiveReadOnly: 'IfPossible' },
    ]);
    assert.deepEqual(
      got.map((m) => [m.propagation, m.recursiveReadOnly]),
      [
        [2, false],
        [1, false],
        [0, true],
      ],
    );
    const old = { selinux: false, recursiveReadOnly: false };
    assert.equal(
      mounted([{ name: 'v', mountPath: '/c', readOnly: true, recursiveReadOnly: 'IfPossible' }], old)[0]
        ?.recursiveReadOnly,
      false,
    );
    const refused = (mount: Partial<VolumeMount>, problem: RegExp): void =>
      assert.throws(() => mounted([{ name: 'v', mountPath: '/c', ...mount }], old), problem);
    refused({ readOnly: true, recursiveReadOnly: 'Enabled' }, /not supported by the runtime/);
    // What contradicts itself is refused whatever the runtime can do, also where it is only a wish.
    for (const recursiveReadOnly of ['Enabled', 'IfPossible'] as const) {
      refused({ recursiveReadOnly }, /"v" requested recursive read-only mode, but it is not read-only/);
      refused(
        { readOnly: true, recursiveReadOnly, mountPropagation: 'HostToContainer' },
        /but it is not compatible with propagation "HostToContainer"/,
      );
    }
  });
  it('images as volumes', () =>
    assert.deepEqual(
      mounted([
        { name: 'img', mountPath: '/i' },
        { name: 'img', mountPath: '/j', subPath: 'sub/1', readOnly: true, recursiveReadOnly: 'Enabled' },
      ]),
      [
        {
          containerPath: '/i',
          image: { image: 'sha' },
          imageSubPath: '',
          readonly: true,
          propagation: 0,
          recursiveReadOnly: false,
        },
        {
          containerPath: '/j',
          image: { image: 'sha' },
          imageSubPath: '/sub/1',
          readonly: true,
          propagation: 0,
          recursiveReadOnly: true,
        },
      ],
    ));
  it('a volume that is not there', () =>
    assert.throws(() => mounted([{ name: 'x', mountPath: '/x' }]), {
      message: 'cannot find volume "x" to mount into container "a"',
    }));
  it('block devices', () => {
    assert.deepEqual(blockDevices({ name: 'a', volumeDevices: [{ name: 'dev', devicePath: '/dev/y' }] }, volumes), [
      { containerPath: '/dev/y', hostPath: '/dev/x', permissions: 'r' },
    ]);
    assert.throws(
      () => blockDevices({ name: 'a', volumeDevices: [{ name: 'v', devicePath: '/dev/y' }] }, volumes),
      /cannot find volume "v"/,
    );
  });
  it('sub-paths stay inside', () => {
    assert.equal(
      subPathOf({ name: 'v', mountPath: '/', subPathExpr: 'a/$(X)' }, () => 'b'),
      'a/b',
    );
    assert.throws(
      () => subPathOf({ name: 'v', mountPath: '/', subPath: '/abs' }, () => ''),
      /must not be an absolute path/,
    );
    assert.throws(
      () => subPathOf({ name: 'v', mountPath: '/', subPathExpr: '$(X)/x' }, () => '..'),
      /must not contain '\.\.'/,
    );
    assert.throws(
      () => subPathOf({ name: 'v', mountPath: '/', subPathExpr: '$(X)$(X)' }, () => 'a/'.repeat(1_500)),
      /longer than 4095 bytes/,
    );
  });
});

describe('labels and logs', () => {
  it('come back from a container alone', () => {
    const container: Container = {
      name: 'a',
      ports: [{ name: 'x', containerPort: 80, protocol: 'TCP' }],
      lifecycle: { preStop: { sleep: { seconds: 3 } } },
    };
    const pod = podOf({ containers: [container], terminationGracePeriodSeconds: 9 }, { deletionGracePeriodSeconds: 4 });
    const seen = { name: 'a', labels: {}, annotations: containerAnnotations(pod, container, 2) };
    assert.deepEqual(restoredContainer(seen), container);
    assert.deepEqual(restoredPod('u', 'p', 'ns', seen).spec.terminationGracePeriodSeconds, 9);
    assert.deepEqual(restoredPod('u', 'p', 'ns', seen).metadata.deletionGracePeriodSeconds, 4);
    assert.deepEqual(restoredContainer({ ...seen, annotations: { 'io.kubernetes.container.preStopHandler': '{' } }), {
      name: 'a',
    });
  });
  it('markup in a hook is escaped as Go does', () =>
    assert.equal(
      containerAnnotations(podOf(), { name: 'a', lifecycle: { preStop: { exec: { command: ['a<b&c'] } } } }, 0)[
        'io.kubernetes.container.preStopHandler'
      ],
      '{"exec":{"command":["a\\u003cb\\u0026c"]}}',
    ));
  it('restart count from old logs', () => {
    assert.equal(restartCountFromLogs(['0.log', '3.log.20260101-000000.gz', 'x.log', '12']), 4);
    assert.equal(restartCountFromLogs([]), 0);
    assert.equal(restartCountFromLogs(['1.log', '99999999999999999999.log', '-5.log']), 2, 'a pod may plant any name');
    assert.equal(restartCountFromLogs(Array.from({ length: 300_000 }, () => '7.log')), 8);
  });
  it('ports once, sysctls dotted', () => {
    const config = sandboxConfig(
      {
        pod: podOf({
          containers: [
            {
              name: 'a',
              ports: [
                { containerPort: 1 },
                { containerPort: 1, protocol: 'TCP' },
                { containerPort: 1, protocol: 'UDP' },
                { name: 'n', containerPort: 2 },
                { name: 'n', containerPort: 3 },
              ],
            },
          ],
          securityContext: {
            sysctls: [
              { name: 'net/ipv4/ip_forward', value: '1' },
              { name: 'net.ipv4.conf.eth0/1.x', value: '2' },
            ],
          },
        }),
        attempt: 1,
        dns: { servers: [], searches: [], options: [] },
        cgroupParent: '/x',
        extraGroups: [],
        userns: undefined,
      },
      FACTS,
    );
    assert.deepEqual(
      config.portMappings?.map((p) => [p.protocol, p.containerPort]),
      [
        [0, 1],
        [1, 1],
        [0, 2],
      ],
    );
    assert.deepEqual(config.linux?.sysctls, { 'net.ipv4.ip_forward': '1', 'net.ipv4.conf.eth0/1.x': '2' });
  });
});
