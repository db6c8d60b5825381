// The logs of a removed container go, and nothing that a pod put in their place leads elsewhere.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import type { CriRuntime } from '../cri/services.ts';
import type { ObservedContainer } from '../core/snapshot.ts';
import { ContainerRemover } from './container-remover.ts';
import type { ResourceManager } from './needs.ts';

const root = mkdtempSync(join(tmpdir(), 'remover-'));
after(() => rmSync(root, { recursive: true, force: true }));
const { signal } = new AbortController();

async function remove(logPath: string): Promise<number> {
  let asked = 0;
  const cri = {
    removeContainer: async () => {
      asked++;
      return {};
    },
  } as unknown as CriRuntime;
  const resources = { hooks: { postStop: () => undefined } } as unknown as ResourceManager;
  const container = { id: 'id', name: 'c', labels: {}, logPath } as unknown as ObservedContainer;
  await new ContainerRemover({ cri, resources }, { containerLogsDir: root }).remove(container, false, signal);
  return asked;
}

describe('removing a container', () => {
  it('takes its logs along, those of other starts stay', async () => {
    const dir = join(root, 'plain');
    mkdirSync(dir);
    for (const name of ['0.log', '0.log.20260101-000000.gz', '1.log', 'other']) writeFileSync(join(dir, name), '');
    mkdirSync(join(dir, '0.log.directory'));
    assert.equal(await remove(join(dir, '0.log')), 1);
    assert.deepEqual(readdirSync(dir).sort(), ['1.log', 'other']);
  });

  it('does not follow a directory that is a link, and is not held up by it', async () => {
    const elsewhere = join(root, 'elsewhere');
    mkdirSync(elsewhere);
    writeFileSync(join(elsewhere, '0.log'), '');
    symlinkSync(elsewhere, join(root, 'link'));
    assert.equal(await remove(join(root, 'link', '0.log')), 1);
    assert.deepEqual(readdirSync(elsewhere), ['0.log']);
    assert.equal(await remove(join(root, 'none', '0.log')), 1);
  });
});
