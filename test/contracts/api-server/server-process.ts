// The embedded API server in a process of its own, so that tests can kill it: `server-process.ts DIRECTORY PORT`.
import { startApiServer } from '../../../src/devcluster/start-api-server.ts';

const [dir = '', port = '0'] = process.argv.slice(2);
const running = await startApiServer({ dir, port: Number(port), controllers: ['namespaces'] });
process.stdout.write(`${running.port}\n`);
process.once('SIGTERM', () => void running.stop().then(() => process.exit(0)));
