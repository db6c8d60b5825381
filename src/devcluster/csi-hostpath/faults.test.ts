import { strict as assert } from 'node:assert';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { GrpcError } from '../../lib/grpc/status.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import { sizeFor } from './controller-service.ts';
import { FaultFile, suffer, type CallFault } from './faults.ts';

const directory = mkdtempSync(join(tmpdir(), 'csi-faults-'));
after(() => rmSync(directory, { recursive: true, force: true }));

describe('faults on demand', () => {
  const path = join(directory, 'faults.json');
  const file = new FaultFile(path);

  it('happen as often as the file says, to the call and the volume it names', async () => {
    const faults: CallFault[] = [
      { call: 'NodeStageVolume', do: 'error', code: 'Aborted', times: 2, volumeId: 'a' },
      { call: 'NodeUnstageVolume', do: 'hang' },
    ];
    writeFileSync(path, JSON.stringify({ faults }));
    assert.equal(await file.take('NodeStageVolume', 'b'), undefined);
    assert.equal((await file.take('NodeStageVolume', 'a'))?.code, 'Aborted');
    assert.equal((await file.take('NodeStageVolume', 'a'))?.code, 'Aborted');
    assert.equal(await file.take('NodeStageVolume', 'a'), undefined);
    assert.equal((await file.take('NodeUnstageVolume', 'b'))?.do, 'hang');
    assert.equal((await file.take('NodeUnstageVolume', 'b'))?.do, 'hang');
  });

  it('count down one by one when calls come together', async () => {
    writeFileSync(path, JSON.stringify({ faults: [{ call: '*', do: 'error', times: 3 }] }));
    const taken = await Promise.all(Array.from({ length: 8 }, () => file.take('NodeGetInfo', '')));
    assert.equal(taken.filter((f) => f !== undefined).length, 3);
  });

  it('are none without a file', async () => {
    assert.equal(await new FaultFile(join(directory, 'absent')).take('Probe', ''), undefined);
  });

  it('answer with their code, or wait for the caller to go away', async () => {
    const deps = { clock: new ManualClock(), die: (): void => undefined };
    const caller = new AbortController();
    await assert.rejects(
      suffer({ call: 'x', do: 'error', code: 'OutOfRange', message: 'm' }, deps, caller.signal),
      (err: unknown) => err instanceof GrpcError && err.codeName === 'OutOfRange' && err.message === 'm',
    );
    const hung = suffer({ call: 'x', do: 'hang' }, deps, caller.signal);
    caller.abort();
    await assert.rejects(hung, (err: unknown) => err instanceof GrpcError && err.codeName === 'Canceled');
  });
});

describe('sizes of volumes', () => {
  const range = (requiredBytes: number, limitBytes = 0): { requiredBytes: number; limitBytes: number } => ({
    requiredBytes,
    limitBytes,
  });
  for (const [name, asked, size] of [
    ['nothing asked', undefined, 1024 ** 3],
    ['what is required', range(8 << 20), 8 << 20],
    ['not less than a file system needs', range(1), 1 << 20],
    ['the limit when nothing is required', range(0, 4 << 20), 4 << 20],
  ] as const)
    it(name, () => assert.equal(sizeFor(asked), size));
  for (const [name, asked, code] of [
    ['negative', range(-1), 'InvalidArgument'],
    ['too large', range(2 * 1024 ** 4), 'OutOfRange'],
    ['a limit below the smallest', range(0, 1000), 'OutOfRange'],
  ] as const)
    it(`refused: ${name}`, () =>
      assert.throws(
        () => sizeFor(asked),
        (err: unknown) => err instanceof GrpcError && err.codeName === code,
      ));
});
