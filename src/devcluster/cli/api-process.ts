// The API server as a process of its own: `api-process.ts DIRECTORY`. Also hands out the node's credentials.
import { networkInterfaces, hostname } from 'node:os';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../lib/atomic-file.ts';
import { systemClock } from '../../lib/clock.ts';
import { formatText, LeveledLogger } from '../../lib/logger.ts';
import { startApiServer } from '../start-api-server.ts';
import { DRIVER_NAME } from '../csi-hostpath/driver-name.ts';
import { runServices } from '../services/run-services.ts';
import { pathsBelow } from './paths.ts';
import { readSettings } from './settings.ts';

async function main(directory: string): Promise<void> {
  const paths = pathsBelow(directory);
  const settings = await readSettings(paths);
  if (settings === undefined) throw new Error(`no settings in ${directory}`);
  const sink = {
    write: (line: Parameters<typeof formatText>[0]): void => void process.stderr.write(formatText(line, process.pid)),
  };
  const log = new LeveledLogger(systemClock, sink, () => 2);
  const stop = new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
  const { gateway } = settings.network;
  const running = await startApiServer({
    dir: paths.api,
    port: settings.apiPort,
    alsoListenOn: [gateway],
    csiDrivers: [{ name: DRIVER_NAME, endpoint: paths.csiSocket }],
    log,
  });
  await mkdir(paths.kubeletCertificates, { recursive: true, mode: 0o700 });
  const addresses = Object.values(networkInterfaces())
    .flat()
    .filter((a) => a !== undefined && !a.address.startsWith('fe80'))
    .map((a) => a?.address ?? '');
  const serving = running.pki.issueServing(
    { commonName: `system:node:${settings.nodeName}`, organizations: ['system:nodes'] },
    {
      dnsNames: [...new Set([settings.nodeName, hostname(), 'localhost'])],
      ipAddresses: [...new Set([...addresses, '127.0.0.1'])],
    },
  );
  await writeFileAtomic(join(paths.kubeletCertificates, 'serving.key'), serving.keyPem, 0o600);
  await writeFileAtomic(join(paths.kubeletCertificates, 'serving.crt'), serving.certificatePem, 0o644);
  await writeFileAtomic(paths.nodeKubeconfig, running.nodeKubeconfig(settings.nodeName), 0o600);
  log.info('serving', { url: running.url });
  const stopping = new AbortController();
  const services = runServices(
    { store: running.server.registry.store, clock: systemClock, log },
    settings.network,
    stopping.signal,
  );
  await stop;
  stopping.abort();
  await services;
  await running.stop();
}

main(process.argv[2] ?? '').catch((err: unknown) => {
  process.stderr.write(`api-server: ${err instanceof Error ? err.message : String(err)}\n`);
  process.exitCode = 1;
});
