import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { silentLogger } from '../../lib/logger.ts';
import { until } from '../../../test/harness/until.ts';
import { Listener } from '../listener.ts';
import { flagzRoutes, flagzText, foldersOf, negotiate, statuszText } from './zpages.ts';

const V1 = ';as=Flagz;v=v1beta1;g=config.k8s.io';
const OLD = ';as=Flagz;v=v1alpha1;g=config.k8s.io';
const rows: readonly [string, ReturnType<typeof negotiate>][] = [
  ['', 'text'],
  ['*/*', 'text'],
  ['text/plain', 'text'],
  ['text/html, */*;q=0.8', 'text'],
  [`application/json${V1}`, { type: 'application/json', version: 'v1beta1' }],
  [`application/json${OLD}`, { type: 'application/json', version: 'v1alpha1' }],
  [`application/yaml${V1}`, { type: 'application/yaml', version: 'v1beta1' }],
  [`application/*${V1}`, { type: 'application/json', version: 'v1beta1' }],
  [`text/plain;q=0.5, application/yaml${V1}`, { type: 'application/yaml', version: 'v1beta1' }],
  [`application/json${V1.replace('v1beta1', 'v9')}, text/plain`, 'text'],
  ['application/json', 'notAcceptable'],
  [`application/json${V1.replace('Flagz', 'Statusz')}`, 'notAcceptable'],
  [`text/plain${V1}`, 'notAcceptable'],
  ['application/vnd.kubernetes.protobuf', 'notAcceptable'],
];

describe('who asks for the pages of flags and of status gets', () => {
  for (const [accept, form] of rows)
    it(`${JSON.stringify(form)} by "${accept}"`, () => assert.deepEqual(negotiate(accept, 'Flagz'), form));
});

describe('as people get them', () => {
  const warning =
    'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n';

  it('flags', () =>
    assert.equal(
      flagzText(
        [
          ['address', '0.0.0.0'],
          ['allowed-unsafe-sysctls', '[]'],
        ],
        ': ',
      ),
      `\nkubelet flagz\n${warning}address: 0.0.0.0\nallowed-unsafe-sysctls: []\n`,
    ));

  it('status', () => {
    const paths = foldersOf(['/healthz', '/metrics/probes', '/metrics', '/', '/debug/flags/v', '/configz']);
    const fields = {
      startTime: '2026-11-08T03:07:08Z',
      uptimeSeconds: 3_725,
      goVersion: 'go1.26.10',
      binaryVersion: '1.36.4',
      emulationVersion: '1.36',
      paths,
    };
    assert.equal(
      statuszText(fields, '='),
      `\nkubelet statusz\n${warning}
Started= Sun Nov  8 03:07:08 UTC 2026
Up= 1 hr 02 min 05 sec
Go version= go1.26.10
Binary version= 1.36.4
Emulation version= 1.36
Paths= /configz /debug /healthz /metrics
`,
    );
  });
});

it('programs are told which kind and version they get', async () => {
  const endpoint = flagzRoutes({ clock: systemClock, flags: new Map([['v', '2']]) });
  const listener = new Listener({ endpoint, log: silentLogger }, { name: 'test', address: '127.0.0.1', port: 0 });
  const stop = new AbortController();
  const done = listener.run(stop.signal);
  try {
    await until('it listens', () => listener.boundPort !== undefined);
    for (const type of ['application/json', 'application/yaml']) {
      const answer = await fetch(`http://127.0.0.1:${listener.boundPort}/flagz`, {
        headers: { accept: `${type}${V1}` },
      });
      assert.equal(answer.headers.get('content-type'), `${type};g=config.k8s.io;v=v1beta1;as=Flagz`);
      assert.match(await answer.text(), /Flagz/);
    }
  } finally {
    stop.abort();
    await done;
  }
});
