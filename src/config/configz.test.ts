import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { configInForce, configz } from './configz.ts';
import { completeConfig } from './convert.ts';
import { environmentOf } from './environment.fixture.ts';

describe('the configuration in force', () => {
  const found = { cgroupDriver: 'systemd', certDir: '/pki' } as const;
  for (const [name, config, certificate] of [
    ['a certificate made here', {}, '/pki/kubelet.crt'],
    ['one of the cluster', { serverTLSBootstrap: true }, ''],
    ['one of the administrator', { tlsCertFile: '/mine.crt', tlsPrivateKeyFile: '/mine.key' }, '/mine.crt'],
  ] as const)
    it(name, () => {
      const shown = configInForce({ ...completeConfig({}), ...config }, found);
      assert.equal(shown.cgroupDriver, 'systemd');
      assert.equal(shown.tlsCertFile, certificate);
      assert.equal(shown.tlsPrivateKeyFile, certificate.replace('.crt', '.key'));
    });

  it('shows no credentials', () => {
    const config = { staticPodURLHeader: { Authorization: ['secret'] } };
    const shown = configz(environmentOf({ config, flags: { certDir: '/pki' } }), { cgroupDriver: 'cgroupfs' });
    assert.equal(shown['tlsCertFile'], '/pki/kubelet.crt');
    assert.deepEqual(shown['staticPodURLHeader'], { Authorization: ['<masked>'] });
  });
});
