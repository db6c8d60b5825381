// A driver of claimed devices on the simulated machine. What it has prepared lasts over its own restarts, not over those of
// the machine. It checks how it is called: whoever calls it in the wrong order is reported.
import { DRAResourceHealth, type NodeWatchResourcesResponse } from '../../../src/dra/gen/dra-health.ts';
import { DRAPlugin, type Claim, type Device } from '../../../src/dra/gen/dra-plugin.ts';
import { aborted } from '../../../src/lib/abort.ts';
import type { GrpcServer } from '../../../src/lib/grpc/server.ts';
import { DriverCalls } from './driver-calls.ts';
import { DriverProcesses } from './driver-processes.ts';
import type { World } from './world.ts';

const HEALTH_MS = 20_000;
const HEALTH_TIMEOUT_S = 60;
/** Some devices are not well for a while, again and again. */
const SPELL_MS = 5 * 60_000;

type Verb = 'prepare' | 'unprepare';

export class DraDriver {
  readonly name: string;
  readonly #world: World;
  readonly #watchers = new Set<(message: NodeWatchResourcesResponse) => void>();
  readonly calls: DriverCalls<Verb>;
  readonly processes: DriverProcesses;
  /** CDI devices by the UID of their claim. */
  readonly prepared = new Map<string, string>();
  readonly #names = new Map<string, string>();
  /** What is wrong with a claim; nothing when it is empty. */
  problemOf: (claim: Claim) => string = () => '';
  /** Told of every call that is in order as far as the driver can see. */
  onCall: (verb: Verb, claim: Claim) => void = () => undefined;
  report: (invariant: string, text: string) => void = () => undefined;

  constructor(world: World, name: string) {
    this.#world = world;
    this.name = name;
    this.calls = new DriverCalls(world);
    const serve = (server: GrpcServer): void => this.#serve(server);
    const supportedVersions = ['v1.DRAPlugin'];
    this.processes = new DriverProcesses(world, { type: 'DRAPlugin', name, supportedVersions, serve });
    this.#tell();
  }

  /** Its processes end; what it prepared stays. */
  stop(isKilled: boolean): void {
    this.processes.stop(isKilled);
    this.calls.end();
  }

  /** The machine was switched off. */
  forget(): void {
    this.processes.stop(true);
    this.calls.forget();
    this.prepared.clear();
  }

  /** As the agent tells it. */
  healthOf(claim: string): 'Healthy' | 'Unhealthy' {
    const isSick = Math.floor(this.#world.scheduler.monotonic() / SPELL_MS) % 3 === 2;
    return isSick && (this.#names.get(claim) ?? '').length % 2 === 0 ? 'Unhealthy' : 'Healthy';
  }

  #serve(server: GrpcServer): void {
    server.unary(DRAPlugin.nodePrepareResources, async ({ claims }, gone) => {
      const problems = await this.#call('prepare', claims, gone);
      const entry = (claim: Claim, error: string) => ({ error, devices: error === '' ? [this.#deviceOf(claim)] : [] });
      return { claims: claims.map((claim, i) => ({ key: claim.uid, value: entry(claim, problems[i] ?? '') })) };
    });
    server.unary(DRAPlugin.nodeUnprepareResources, async ({ claims }, gone) => {
      const problems = await this.#call('unprepare', claims, gone);
      return { claims: claims.map(({ uid }, i) => ({ key: uid, value: { error: problems[i] ?? '' } })) };
    });
    server.serverStream(DRAResourceHealth.nodeWatchResources, async (_, gone, send) => {
      const { agent } = this.#world;
      const { starts } = agent;
      const watcher = (message: NodeWatchResourcesResponse): void => {
        // Nobody tells of an agent that was killed.
        if (agent.starts === starts && agent.isRunning && !gone.aborted) send(message);
        else this.#watchers.delete(watcher);
      };
      this.#watchers.add(watcher);
      watcher(this.#health());
      await aborted(gone);
      this.#watchers.delete(watcher);
    });
  }

  #tell(): void {
    const { scheduler } = this.#world;
    const message = this.#health();
    if (this.processes.isRunning) for (const watcher of this.#watchers) watcher(message);
    scheduler.after(HEALTH_MS, () => this.#tell(), scheduler.world);
  }

  #health(): NodeWatchResourcesResponse {
    return {
      devices: [...this.prepared.keys()].map((claim) => ({
        device: { poolName: 'n1', deviceName: this.#names.get(claim) ?? '' },
        health: this.healthOf(claim) === 'Healthy' ? 1 : 2,
        lastUpdatedTime: 0,
        healthCheckTimeoutSeconds: HEALTH_TIMEOUT_S,
        message: '',
      })) as unknown as NodeWatchResourcesResponse['devices'],
    };
  }

  #deviceOf({ uid, name }: Claim): Device {
    const cdi = this.prepared.get(uid) ?? '';
    return { requestNames: [], poolName: 'n1', deviceName: name, cdiDeviceIds: [cdi], shareId: '' };
  }

  /** What is wrong with each of the claims. */
  async #call(verb: Verb, claims: readonly Claim[], gone: AbortSignal): Promise<readonly string[]> {
    for (const { name, uid } of claims) {
      this.#world.trace(`dra ${this.name} ${verb} ${name} ${uid}`);
      for (const other of this.calls.waitedFor(uid))
        this.report('claims in order', `${verb} of ${name} by ${this.name} while ${other.verb} of it is under way`);
    }
    const calls = claims.map(({ uid }) => this.calls.of(verb, { key: uid }, gone));
    return this.calls.carryOut(calls, () => claims.map((claim) => this.#act(verb, claim)));
  }

  #act(verb: Verb, claim: Claim): string {
    const problem = this.problemOf(claim);
    if (problem !== '') return problem;
    this.onCall(verb, claim);
    const { uid, name } = claim;
    this.#names.set(uid, name);
    if (verb === 'prepare') this.prepared.set(uid, `${this.name}/dev=${uid}-${this.#world.boots}`);
    else this.prepared.delete(uid);
    return '';
  }
}
