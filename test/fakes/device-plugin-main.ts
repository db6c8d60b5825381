// The fake device plugin as a process of its own: `device-plugin-main.ts DIRECTORY RESOURCE ID...`, an id with
// its NUMA node as `ID@NODE`. Like real plugins it registers again when the kubelet removed its socket. It ends with SIGTERM.
import { existsSync, mkdirSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FakeDevicePlugin } from './fake-device-plugin.ts';

const [directory = '', resource = '', ...ids] = process.argv.slice(2);
const files = join(directory, '..', 'device-files');
mkdirSync(files, { recursive: true });
const plugin = new FakeDevicePlugin({
  directory,
  resource,
  devices: ids.map((given) => {
    const [id = '', node] = given.split('@');
    return { id, ...(node === undefined ? {} : { nodes: [Number(node)] }) };
  }),
  options: { preStartRequired: true },
  answer: (given) => {
    writeFileSync(join(files, 'info'), `made for ${given.join(',')}\n`);
    return {
      envs: { CARDS: given.join(',') },
      mounts: [{ containerPath: '/opt/card', hostPath: files, readOnly: true }],
      devices: [{ containerPath: '/dev/card', hostPath: '/dev/null', permissions: 'rw' }],
    };
  },
});

let starting: Promise<unknown> = Promise.resolve();
const startAgain = (): void => {
  const kubelet = existsSync(join(directory, 'kubelet.sock'));
  if (!kubelet || existsSync(plugin.socketPath)) return;
  starting = starting
    .then(() => plugin.start())
    .catch((err: unknown) => console.error(`not registered: ${String(err)}`));
};
watch(directory, () => void starting.then(startAgain));
startAgain();
process.once('SIGTERM', () => void plugin.stop().then(() => process.exit(0)));
