// Stands for kube-apiserver in tests of the harness itself: takes its flags, keeps its files, writes its audit log, and is
// as bare as the real one (no controllers). Behind it is the embedded server.
import { appendFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { startApiServer } from '../../src/devcluster/start-api-server.ts';

const VERBS: Readonly<Record<string, string>> = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };

const flag = (name: string): string => {
  const found = process.argv.find((arg) => arg.startsWith(`--${name}=`));
  if (found === undefined) throw new Error(`--${name} is missing`);
  return found.slice(name.length + 3);
};

let count = 0;
const running = await startApiServer({
  dir: dirname(flag('cert-dir')),
  port: Number(flag('secure-port')),
  controllers: [],
  observe: ({ atMs, method, url, user, credential, userAgent, code }) =>
    appendFileSync(
      flag('audit-log-path'),
      `${JSON.stringify({
        auditID: `${process.pid}-${count++}`,
        verb: VERBS[method] ?? 'get',
        requestURI: url,
        user: { username: user, extra: { 'authentication.kubernetes.io/credential-id': [credential] } },
        userAgent,
        responseStatus: { code },
        stageTimestamp: new Date(atMs).toISOString(),
      })}\n`,
    ),
});
process.once('SIGTERM', () => void running.stop().then(() => process.exit(0)));
