import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { NodePublishVolumeRequest, NodeGetVolumeStatsResponse } from '../../lib/csi-api/gen/csi.ts';
import { readable } from './call-log.ts';

test('a recorded request has the names of the protocol, no zero values and no secrets', () => {
  const request: NodePublishVolumeRequest = {
    volumeId: 'v',
    publishContext: {},
    stagingTargetPath: '',
    targetPath: '/t',
    volumeCapability: { mount: { fsType: 'ext4', mountFlags: ['ro'], volumeMountGroup: '' }, accessMode: { mode: 7 } },
    readonly: false,
    secrets: { password: 'open sesame' },
    volumeContext: { b: '2', a: '1' },
  };
  const shown = readable(NodePublishVolumeRequest.spec, request);
  assert.equal(
    JSON.stringify(shown),
    '{"volume_id":"v","target_path":"/t","volume_capability":{"mount":{"fs_type":"ext4","mount_flags":["ro"]},' +
      '"access_mode":{"mode":"SINGLE_NODE_MULTI_WRITER"}},"secrets":{"password":"***"},"volume_context":{"a":"1","b":"2"}}',
  );
});

test('lists of messages and empty messages are shown', () => {
  const response: NodeGetVolumeStatsResponse = {
    usage: [{ available: 0, total: 5, used: 1, unit: 2 }],
    volumeCondition: { abnormal: false, message: '' },
  };
  assert.deepEqual(readable(NodeGetVolumeStatsResponse.spec, response), {
    usage: [{ total: 5, used: 1, unit: 'INODES' }],
    volume_condition: {},
  });
});
