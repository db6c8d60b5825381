// The embedded API server as a process of its own: `api-process.ts DIRECTORY NODE`. Leaves kubeconfigs in the directory.
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DRIVER_NAME } from '../src/devcluster/csi-hostpath/driver-name.ts';
import { startApiServer } from '../src/devcluster/start-api-server.ts';

const [dir = '', node = ''] = process.argv.slice(2);
// The driver itself is started by those who measure it.
const csiDrivers = [{ name: DRIVER_NAME, endpoint: join(dirname(dir), 'csi.sock') }];
const api = await startApiServer({ dir, port: 0, csiDrivers });
writeFileSync(join(dir, 'node.kubeconfig'), api.nodeKubeconfig(node), { mode: 0o600 });
const stop = new Promise<void>((resolve) => {
  process.once('SIGTERM', () => resolve());
  process.once('disconnect', () => resolve());
});
process.send?.('ready');
await stop;
await api.stop();
process.exit(0);
