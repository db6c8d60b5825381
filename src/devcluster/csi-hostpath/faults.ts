// Failures on demand: which call is to go wrong, and how. From a file that is read anew at every call, so that a test
// can change it while the driver runs as a process of its own.
import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from '../../lib/atomic-file.ts';
import { aborted } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { GrpcCode, GrpcError, type GrpcCodeName } from '../../lib/grpc/status.ts';

export type CallFault = {
  /** `NodeStageVolume` and so on, or `*`. */
  readonly call: string;
  readonly do: 'error' | 'hang' | 'die' | 'delay';
  readonly code?: GrpcCodeName;
  readonly message?: string;
  readonly delayMs?: number;
  /** After the work is done, so that only the answer is lost. */
  readonly after?: boolean;
  /** How often; for ever when absent. */
  readonly times?: number;
  /** Only calls about this volume. */
  readonly volumeId?: string;
};

export type ReportedCondition = { readonly abnormal: boolean; readonly message: string };

export interface FaultSource {
  /** The fault for this call, counted down. */
  take(call: string, volumeId: string): Promise<CallFault | undefined>;
  /** What NodeGetVolumeStats is to say about the health of volumes. */
  condition(): Promise<ReportedCondition | undefined>;
}

type FaultTable = { readonly faults?: readonly CallFault[]; readonly condition?: ReportedCondition };

const concerns = (fault: CallFault, call: string, volumeId: string): boolean =>
  (fault.call === '*' || fault.call === call) &&
  (fault.times ?? 1) > 0 &&
  (fault.volumeId === undefined || fault.volumeId === volumeId);

/** The table after `fault` has happened once more. */
const countedDown = (faults: readonly CallFault[], fault: CallFault): readonly CallFault[] =>
  faults.flatMap((f) =>
    f !== fault || f.times === undefined ? [f] : f.times > 1 ? [{ ...f, times: f.times - 1 }] : [],
  );

export class FaultFile implements FaultSource {
  readonly #path: string;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  take(call: string, volumeId: string): Promise<CallFault | undefined> {
    const turn = this.#turn.then(() => this.#take(call, volumeId));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async condition(): Promise<ReportedCondition | undefined> {
    return (await this.#read()).condition;
  }

  async #take(call: string, volumeId: string): Promise<CallFault | undefined> {
    const table = await this.#read();
    const faults = table.faults ?? [];
    const fault = faults.find((f) => concerns(f, call, volumeId));
    if (fault?.times !== undefined)
      await writeFileAtomic(this.#path, JSON.stringify({ ...table, faults: countedDown(faults, fault) }), 0o600);
    return fault;
  }

  async #read(): Promise<FaultTable> {
    const text = await readFile(this.#path, 'utf8').catch(() => '');
    return text === '' ? {} : (JSON.parse(text) as FaultTable);
  }
}

/** Lets the fault happen. Returns when the call is to go on. */
export async function suffer(
  fault: CallFault,
  deps: { readonly clock: Clock; readonly die: () => void },
  signal: AbortSignal,
): Promise<void> {
  switch (fault.do) {
    case 'delay':
      return deps.clock.sleep(fault.delayMs ?? 1000, signal);
    case 'die':
      deps.die();
      return aborted(signal);
    case 'hang':
      await aborted(signal);
      throw new GrpcError(GrpcCode.Canceled, 'the caller went away');
    case 'error':
      throw new GrpcError(GrpcCode[fault.code ?? 'Internal'], fault.message ?? 'failure on demand');
    default:
      return fault.do satisfies never;
  }
}
