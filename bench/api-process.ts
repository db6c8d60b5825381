// The embedded API server as a process of its own: `api-process.ts DIRECTORY NODE`. Leaves kubeconfigs in the directory.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startApiServer } from '../src/devcluster/start-api-server.ts';

const [dir = '', node = ''] = process.argv.slice(2);
const api = await startApiServer({ dir, port: 0 });
writeFileSync(join(dir, 'node.kubeconfig'), api.nodeKubeconfig(node), { mode: 0o600 });
const stop = new Promise<void>((resolve) => {
  process.once('SIGTERM', () => resolve());
  process.once('disconnect', () => resolve());
});
process.send?.('ready');
await stop;
await api.stop();
process.exit(0);
