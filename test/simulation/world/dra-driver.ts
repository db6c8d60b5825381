// A driver of claimed devices on the simulated machine. What it has prepared lasts over its own restarts, not over those of
// the machine. It checks how it is called: whoever calls it in the wrong order is reported.
import { DRAResourceHealth, type NodeWatchResourcesResponse } from '../../../src/dra/gen/dra-health.ts';
import { DRAPlugin, type Claim, type Device } from '../../../src/dra/gen/dra-plugin.ts';
import { Registration } from '../../../src/lib/csi-api/gen/pluginregistration.ts';
import { aborted } from '../../../src/lib/abort.ts';
import { GrpcServer } from '../../../src/lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../../../src/lib/grpc/status.ts';
import { makeDirs } from './host.ts';
import type { World } from './world.ts';

const REGISTRY = '/var/lib/kubelet/plugins_registry';
const AGAIN_MS = 5000;
const HEALTH_MS = 20_000;
const HEALTH_TIMEOUT_S = 60;
/** Some devices are not well for a while, again and again. */
const SPELL_MS = 5 * 60_000;

type Verb = 'prepare' | 'unprepare';

/** A call under way that its caller still waits for. */
type Call = { readonly verb: Verb; readonly claim: string; readonly isWaitedFor: () => boolean };

/** One process of it: there are two for the time of an update. */
type Instance = { readonly sockets: readonly [string, string]; readonly servers: readonly GrpcServer[] };

export class DraDriver {
  readonly name: string;
  readonly #world: World;
  readonly #calls = new Set<Call>();
  readonly #busy = new Set<string>();
  readonly #slow = new Set<() => void>();
  readonly #watchers = new Set<(message: NodeWatchResourcesResponse) => void>();
  #instances: Instance[] = [];
  #generation = 0;
  #version = 0;
  /** CDI devices by the UID of their claim. */
  readonly prepared = new Map<string, string>();
  readonly #names = new Map<string, string>();
  /** Told before a call has any effect; a throw is its answer. */
  before: (verb: Verb) => void = () => undefined;
  /** What is wrong with a claim; nothing when it is empty. */
  problemOf: (claim: Claim) => string = () => '';
  /** Told when it had its effect. */
  after: (verb: Verb) => void = () => undefined;
  /** Told of every call that is in order as far as the driver can see. */
  onCall: (verb: Verb, claim: Claim) => void = () => undefined;
  report: (invariant: string, text: string) => void = () => undefined;
  slownessMs = 0;

  constructor(world: World, name: string) {
    this.#world = world;
    this.name = name;
    this.#tell();
  }

  get isRunning(): boolean {
    return this.#instances.length > 0;
  }

  /** Where its sockets cannot be made (a full disk), whoever started it tries again. */
  async start(): Promise<void> {
    const { scheduler } = this.#world;
    const generation = ++this.#generation;
    try {
      await this.#listen();
    } catch (err) {
      this.#world.trace(`the driver ${this.name} cannot start: ${(err as Error).message}`);
      const again = (): unknown => this.#generation === generation && !this.isRunning && this.start();
      scheduler.after(AGAIN_MS, () => void again(), scheduler.world);
    }
  }

  async #listen(): Promise<void> {
    const folder = `/var/lib/kubelet/plugins/${this.name}`;
    const at = `${folder}/dra-${this.#version}.sock`;
    const registrationAt = `${REGISTRY}/${this.name}-${this.#version}-reg.sock`;
    const plugin = new GrpcServer();
    const registration = new GrpcServer();
    const instance: Instance = { sockets: [at, registrationAt], servers: [plugin, registration] };
    this.#serve(plugin);
    registration.unary(Registration.getInfo, async () => {
      return { type: 'DRAPlugin', name: this.name, endpoint: at, supportedVersions: ['v1.DRAPlugin'] };
    });
    registration.unary(Registration.notifyRegistrationStatus, async () => ({}));
    for (const path of [folder, REGISTRY]) makeDirs(this.#world.files, path);
    for (const path of instance.sockets) this.#unlink(path);
    await plugin.listen(at);
    await registration.listen(registrationAt);
    this.#instances.push(instance);
  }

  /** Its process ends; what it prepared stays. `isKilled`: its sockets stay as well. */
  stop(isKilled: boolean): void {
    this.#generation++;
    const gone = this.#instances;
    this.#instances = [];
    this.#busy.clear();
    for (const instance of gone) this.#end(instance, isKilled);
  }

  /** Another version of it comes up beside this one, which ends when `endOld` is called. */
  async update(): Promise<void> {
    if (!this.isRunning) return;
    this.#version++;
    await this.start();
  }

  endOld(isKilled: boolean): void {
    const old = this.#instances.slice(0, -1);
    this.#instances = this.#instances.slice(-1);
    for (const instance of old) this.#end(instance, isKilled);
  }

  #end({ servers, sockets }: Instance, isKilled: boolean): void {
    for (const server of servers) void server.close();
    if (isKilled) return;
    try {
      for (const path of sockets) this.#unlink(path);
    } catch {
      // A disk that cannot be written: as if it was killed.
    }
  }

  #unlink(path: string): void {
    const { files } = this.#world;
    if (files.find(path, 'unlink').inode !== undefined) files.unlink(path);
  }

  /** The machine was switched off. */
  forget(): void {
    this.stop(true);
    this.#calls.clear();
    this.prepared.clear();
  }

  hurry(): void {
    const { scheduler } = this.#world;
    for (const end of this.#slow) scheduler.after(1000 * scheduler.latency.next(), end, scheduler.world);
    this.#slow.clear();
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
    if (this.isRunning) for (const watcher of this.#watchers) watcher(message);
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
    const { agent } = this.#world;
    const { starts } = agent;
    const isWaitedFor = (): boolean => !gone.aborted && agent.starts === starts && agent.isRunning;
    const calls = claims.map((claim): Call => ({ verb, claim: claim.uid, isWaitedFor }));
    for (const claim of claims) {
      this.#world.trace(`dra ${this.name} ${verb} ${claim.name} ${claim.uid}`);
      this.#checkTurn(verb, claim);
    }
    for (const call of calls) this.#calls.add(call);
    try {
      return await this.#carryOut(verb, claims);
    } finally {
      for (const call of calls) this.#calls.delete(call);
    }
  }

  #checkTurn(verb: Verb, { name, uid }: Claim): void {
    const other = [...this.#calls].find((call) => call.claim === uid && call.isWaitedFor());
    if (other === undefined) return;
    this.report('claims in order', `${verb} of ${name} by ${this.name} while ${other.verb} of it is under way`);
  }

  async #carryOut(verb: Verb, claims: readonly Claim[]): Promise<readonly string[]> {
    const { scheduler } = this.#world;
    const generation = this.#generation;
    const busy = claims.find(({ uid }) => this.#busy.has(uid));
    if (busy !== undefined) throw new GrpcError(GrpcCode.Aborted, `a call for ${busy.name} is under way`);
    this.before(verb);
    for (const { uid } of claims) this.#busy.add(uid);
    const ms = (this.slownessMs > 0 ? this.slownessMs : 20) * scheduler.latency.next();
    await this.#pass(ms);
    if (generation !== this.#generation) throw new GrpcError(GrpcCode.Unavailable, 'the driver has ended');
    for (const { uid } of claims) this.#busy.delete(uid);
    const problems = claims.map((claim) => this.#act(verb, claim));
    this.after(verb);
    return problems;
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

  #pass(ms: number): Promise<void> {
    const { scheduler } = this.#world;
    return new Promise((resolve) => {
      const end = (): void => {
        this.#slow.delete(end);
        resolve();
      };
      this.#slow.add(end);
      scheduler.after(ms, end, scheduler.world);
    });
  }
}
