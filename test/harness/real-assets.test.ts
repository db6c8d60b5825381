// runs: gate
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { apiServerFlags, assetsFolder, controllerManagerFlags, etcdFlags, findAssets } from './real-assets.ts';

const ports = { etcdClient: 1001, etcdPeer: 1002, api: 1003 };
const valueOf = (flags: readonly string[], name: string): string | undefined =>
  flags.find((f) => f.startsWith(`--${name}=`))?.slice(name.length + 3);

describe('the folder with the real control plane', () => {
  it('means the embedded server when it is not named', () => {
    assert.equal(assetsFolder({}), undefined);
    assert.equal(assetsFolder({ KUBEBUILDER_ASSETS: '' }), undefined);
    assert.equal(assetsFolder({ KUBEBUILDER_ASSETS: '/a' }), '/a');
  });

  it('says what is missing instead of going on without', () => {
    assert.throws(
      () => findAssets('/a', () => false),
      /KUBEBUILDER_ASSETS=\/a has no executable kube-apiserver and no etcd/,
    );
    assert.throws(() => findAssets('/a', (p) => p === '/a/etcd'), /has no executable kube-apiserver;/);
  });

  it('takes scheduler, controller manager and kubectl where they are', () => {
    const bare = findAssets('/a', (p) => /\/(etcd|kube-apiserver)$/.test(p));
    assert.deepEqual([bare.scheduler, bare.controllerManager, bare.kubectl], [undefined, undefined, undefined]);
    const full = findAssets('/a', () => true);
    assert.equal(full.controllerManager, '/a/kube-controller-manager');
    assert.equal(full.scheduler, '/a/kube-scheduler');
    assert.equal(full.kubectl, '/a/kubectl');
  });
});

describe('flags of the real control plane', () => {
  it('connects API server and etcd and listens on loopback only', () => {
    const api = apiServerFlags('/d', ports);
    assert.equal(valueOf(api, 'etcd-servers'), valueOf(etcdFlags('/d', ports), 'advertise-client-urls'));
    assert.equal(valueOf(api, 'bind-address'), '127.0.0.1');
    assert.equal(valueOf(api, 'secure-port'), '1003');
  });

  it('judges kubelets as a cluster does', () => {
    const api = apiServerFlags('/d', ports);
    assert.equal(valueOf(api, 'authorization-mode'), 'Node,RBAC');
    assert.equal(valueOf(api, 'enable-admission-plugins'), 'NodeRestriction');
    assert.equal(valueOf(api, 'enable-bootstrap-token-auth'), 'true');
    assert.equal(valueOf(api, 'kubelet-certificate-authority'), undefined);
  });

  it('names every flag once and keeps every file below its folder', () => {
    for (const flags of [etcdFlags('/d', ports), apiServerFlags('/d', ports), controllerManagerFlags('/d')]) {
      const names = flags.map((f) => f.split('=')[0]);
      assert.equal(new Set(names).size, names.length);
      for (const flag of flags.filter((f) => /(-file|-dir|-path|kubeconfig|certificate|-key)=/.test(f)))
        assert.match(flag, /=\/d\//);
    }
  });

  it('lets the controller manager sign with the CA the API server trusts', () => {
    assert.equal(
      valueOf(controllerManagerFlags('/d'), 'cluster-signing-cert-file'),
      valueOf(apiServerFlags('/d', ports), 'client-ca-file'),
    );
  });
});
