// The fake DRA driver as a process of its own: `dra-driver-main.ts DIRECTORY REGISTRY DRIVER CDI_FILE`. Each claim gets one
// device, which the CDI file describes. It ends with SIGTERM.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { FakeDraDriver } from './fake-dra-driver.ts';

const [directory = '', registry = '', driver = '', cdiFile = ''] = process.argv.slice(2);
const described = new Set<string>();
const fake = new FakeDraDriver({
  directory,
  driver,
  health: true,
  devices: ({ name }) => {
    described.add(name);
    const devices = [...described].map((device) => ({
      name: device,
      containerEdits: { env: [`CLAIM_${device}=yes`] },
    }));
    mkdirSync(dirname(cdiFile), { recursive: true });
    writeFileSync(cdiFile, JSON.stringify({ cdiVersion: '0.6.0', kind: `${driver}/dev`, devices }));
    return [{ poolName: 'pool', deviceName: name, cdiDeviceIds: [`${driver}/dev=${name}`] }];
  },
});
mkdirSync(directory, { recursive: true });
await fake.listen();
await fake.register(registry);
process.once('SIGTERM', () => {
  rmSync(cdiFile, { force: true });
  void fake.stop().then(() => process.exit(0));
});
process.on('SIGUSR1', () => {
  for (const device of described) fake.tellHealth('pool', device, 2, 'too hot');
});
