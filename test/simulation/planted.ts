// Bugs put into the agent on purpose, one of each class, as one replaced expression of its source: the proof that the
// simulation can fail. A row whose text is no longer in the file fails at once.

export type Planted = {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** The invariants that may notice it first. */
  readonly found: readonly string[];
  /** The part of the world it shows in; see PARTS. */
  readonly with?: string;
};

export const PLANTED: Readonly<Record<string, Planted>> = {
  'lost-wake-up': {
    file: 'lib/keyed-runner.ts',
    find: 'if (this.#running.has(key)) this.#again.add(key);',
    replace: 'if (this.#running.has(key)) return;',
    found: ['status is true', 'wanted runs', 'stops in time', 'nothing else runs', 'given back', 'news arrives'],
  },
  'double-start': {
    file: 'runtime/plan.ts',
    find: "if (seen?.state !== 'running') {",
    replace: "if (seen?.state !== 'running' || seen.attempt === 2) {",
    found: ['no container twice', 'nothing needed is stopped'],
  },
  'leaked-mount': {
    file: 'host/mounts/mounter.ts',
    find: 'if (table !== undefined && entry === undefined)',
    replace: 'if (entry === undefined)',
    found: ['given back', 'stops in time'],
  },
  'early-removal': {
    file: 'garbage/pod-leftovers.ts',
    find: 'isInUse(podUid(uid)) || isAlive(observed.get(podUid(uid)));',
    replace: 'isInUse(podUid(uid)) && !isAlive(observed.get(podUid(uid)));',
    found: ['still there'],
  },
  'forgotten-retry': {
    file: 'pods/pod-workers.ts',
    find: 'if (!scope.signal.aborted) againMs = this.#failed(worker, err);',
    replace: 'if (!scope.signal.aborted) this.#failed(worker, err);',
    found: ['wanted runs', 'stops in time', 'nothing else runs', 'given back', 'status is true'],
  },
  'needless-restart': {
    file: 'runtime/plan-steps.ts',
    find: 'seen.annotations[HASH] !== undefined && seen.annotations[HASH] !== containerHash(container);',
    replace: 'seen.attempt === 1 || seen.annotations[HASH] !== containerHash(container);',
    found: ['nothing needed is stopped'],
  },
  'grace-forgotten': {
    file: 'runtime/stop-container.ts',
    find: 'let grace = request.graceOverrideSeconds ?? graceSeconds(pod, container, request.reason);',
    replace: 'let grace = 600 + (request.graceOverrideSeconds ?? graceSeconds(pod, container, request.reason));',
    found: ['stops in time', 'nothing else runs'],
  },
  'status-never-repeated': {
    file: 'status/status-sync.ts',
    find: 'this.#retryLater(uid, isUnreachable(err) ? UNREACHABLE_RETRY_MS : RETRY.maxMs);\n    }\n  }',
    replace: 'this.#sent.set(uid, { version: Infinity, apiUid: uid, finished: true, withheld: false });\n    }\n  }',
    found: ['status is true', 'stops in time', 'given back'],
  },
  'time-travel': {
    file: 'kube/reflector.ts',
    find: 'if (!isOlder(version, this.#seen)) return;',
    replace: 'if (version !== undefined) return;',
    found: ['gone stays gone', 'nothing needed is stopped'],
    with: 'stale',
  },
  'skipped-stage': {
    file: 'volumes/csi/csi-plugin.ts',
    find: 'if (!device.isStaged) await this.#stage(attempt, device);',
    replace: 'if (!device.isStaged && device.users.size === 1) await this.#stage(attempt, device);',
    found: ['volumes in order'],
    with: 'csi',
  },
  'forgotten-device': {
    file: 'devices/device-manager.ts',
    find: 'for (const entry of found.grants) this.#grants.set(entry);',
    replace: 'for (const entry of found.grants.slice(1)) this.#grants.set(entry);',
    found: ['no device twice', 'nothing that runs is refused'],
    with: 'devices',
  },
  'forgotten-cordon': {
    file: 'node/registration.ts',
    find: 'const existing = await client.get(NODES, { name }, signal);',
    replace: 'const existing = await client.patch(NODES, { name }, { spec: { unschedulable: false } }, signal);',
    found: ['cordon is kept'],
    with: 'drain',
  },
  'lost-mark': {
    file: 'status/merge-status.ts',
    find: 'const merged = api.filter((c) => !OWNED_CONDITIONS.includes(c.type));',
    replace: "const merged = api.filter((c) => c.type === 'PodScheduled');",
    found: ['evicted stays marked'],
    with: 'drain',
  },
  'early-unprepare': {
    file: 'dra/dra-manager.ts',
    find: '|| this.#hasOthers(entry, uid)) entry.pods.delete(uid);',
    replace: '|| entry.pods.size > 2) entry.pods.delete(uid);',
    found: ['claims in order'],
    with: 'dra',
  },
  'unprepared-start': {
    file: 'dra/dra-manager.ts',
    find: 'if (!entry.prepared || entry.isDoubtful === true) entries.push(entry);',
    replace: 'if (!entry.prepared && entry.pods.size === 1) entries.push(entry);',
    found: ['claims in order'],
    with: 'dra',
  },
  'uncharged-memory': {
    file: 'resources/memory/memory-policy.ts',
    find: 'charge(state.machine, { ...block, size: block.size - reused });',
    replace: 'charge(state.machine, { ...block, size: 0 });',
    found: ['no memory twice', 'the agent does not end by itself'],
    with: 'memory',
  },
  'memory-again': {
    file: 'resources/memory/memory-policy.ts',
    find: 'if (at < 0 || state.of(uidOf(pod), name) !== undefined) return false;',
    replace: 'if (at < 1000) return false;',
    found: ['nothing that runs is refused'],
    with: 'memory',
  },
  'untold-cpus': {
    file: 'resources/cpu/cpu-manager.ts',
    find: "if (cpus === '' || cpus === this.#told.get(id)) return;",
    replace: "if (cpus !== '') return;",
    found: ['no CPU twice'],
    with: 'devices',
  },
  'early-release': {
    file: 'shutdown/shutdown-manager.ts',
    find: 'if (down) await this.#endPods(signal);',
    replace: 'if (down) void this.#endPods(signal);',
    found: ['ends before the machine does'],
    with: 'shutdown',
  },
  'unheld-device': {
    file: 'volumes/block/device-map.ts',
    find: 'await this.#deps.loops.attach(bind, signal);',
    replace: '',
    found: ['devices are mapped'],
    with: 'block',
  },
  'forgotten-growth': {
    file: 'volumes/claims/expander.ts',
    find: 'await plugin.expand?.(request, mounted, expansion.bytes, signal);',
    replace: '',
    found: ['growth arrives'],
    with: 'block',
  },
  'no-start-with-damage': {
    file: 'lib/latest-file.ts',
    find: "if (errnoOf(err) !== 'ENOENT') this.#deps.log.warn(",
    replace: "if (errnoOf(err) !== 'ENOENT') throw err; else this.#deps.log.warn(",
    found: ['the agent does not end by itself', 'stops in time', 'wanted runs'],
    with: 'upgrade',
  },
};
