// Answers of the runtime as inputs: for a moment they are what they should be but for a value in one place, while pods start and
// stop. Afterwards everything goes on as before.
import { ImageService, RuntimeService } from '../../src/cri/gen/cri.ts';
import type { Rpc } from '../../src/lib/grpc/rpc.ts';
import type { FieldSpec, MessageSpec } from '../../src/lib/proto/codec.ts';
import type { AgentWorld } from './agent-world.ts';
import type { Input } from './inputs.ts';
import { list, NAMESPACE, PODS, record, remove, SAMPLE, within, type Json } from './pod-inputs.ts';
import { places, protoShape, put, shapeOf } from './shapes.ts';
import type { Surface } from './surface.ts';
import { RawJson } from './values.ts';

/** How long answers are odd, at most. */
const ODD_MS = 1500;
const PODS_AT_A_TIME = 3;
const GONE_WITHIN_MS = 30_000;

const verbOf = (rpc: Rpc<never, never>): string => rpc.path.split('/').at(-1) ?? '';
const RPCS = [...Object.values(RuntimeService), ...Object.values(ImageService)]
  .map((rpc) => rpc as unknown as Rpc<never, never>)
  .filter((rpc) => !/^(?:Stream|GetContainerEvents)/.test(verbOf(rpc)));
const SPECS = new Map(RPCS.map((rpc) => [verbOf(rpc), rpc.response.spec]));

/** As the message can say it: whole numbers where its types have them, nothing of another type. */
export function conform(spec: MessageSpec, value: unknown): Json {
  const given = record(value instanceof RawJson ? JSON.parse(value.text) : value);
  return Object.fromEntries(
    spec
      .fields()
      .filter(({ name }) => given[name] !== undefined && given[name] !== null)
      .map((field) => [field.name, conformed(field, given[field.name])]),
  );
}

function conformed(field: FieldSpec, raw: unknown): unknown {
  const value: unknown = raw instanceof RawJson ? JSON.parse(raw.text) : raw;
  if (field.type === 'map') return Object.fromEntries(Object.entries(record(value)).map(([k, v]) => [k, String(v)]));
  const one = (item: unknown): unknown => scalar(field.type as Exclude<FieldSpec['type'], 'map'>, item);
  return field.repeated === true ? list(value).map(one) : one(value);
}

function scalar(type: Exclude<FieldSpec['type'], 'map'>, value: unknown): unknown {
  if (typeof type !== 'string') return conform(type, value);
  switch (type) {
    case 'string':
      return typeof value === 'string' ? value : '';
    case 'bytes':
      return value instanceof Uint8Array ? value : Buffer.from(typeof value === 'string' ? value : '');
    case 'bool':
      return value === true;
    case 'bigint64':
    case 'fixed64':
      return typeof value === 'bigint' ? value : BigInt(Math.trunc(finite(value)));
    default:
      return finite(value);
  }
}

const finite = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0);

let count = 0;

async function offer(world: AgentWorld, inputs: readonly Input[]): Promise<readonly string[]> {
  const odd = inputs.flatMap(({ what }) => what);
  world.proxy.rewrite = (verb, answer) => {
    const spec = SPECS.get(verb);
    const here = odd.filter(({ path }) => path[0] === verb);
    if (spec === undefined || here.length === 0) return answer;
    const shape = protoShape(spec);
    return conform(
      spec,
      here.reduce((made: unknown, { path, value }) => put(made, shape, path.slice(1), value.make()), answer),
    );
  };
  const names = Array.from({ length: PODS_AT_A_TIME }, () => `p-odd-${count++}`);
  try {
    for (const name of names) {
      const own = { name, namespace: NAMESPACE, uid: `uid-${name}`, creationTimestamp: new Date().toISOString() };
      world.api.put(PODS, `${NAMESPACE}/${name}`, { ...SAMPLE, metadata: own });
    }
    const isRunning = (name: string): boolean =>
      record(world.api.get(PODS, `${NAMESPACE}/${name}`)?.['status'])['phase'] === 'Running';
    await within(world, ODD_MS, () => names.every(isRunning));
    void world.page('/stats/summary').catch(() => undefined); // its answer is none of this
  } finally {
    world.proxy.rewrite = undefined;
  }
  if (!world.runs) return [];
  await remove(world, names, GONE_WITHIN_MS);
  const left = names.filter((name) => world.api.get(PODS, `${NAMESPACE}/${name}`) !== undefined);
  for (const name of left) world.api.remove(PODS, `${NAMESPACE}/${name}`);
  return left.map((name) => `a pod of that time does not go\n${world.excerpt(name)}`);
}

const shape = shapeOf('answers', Object.fromEntries([...SPECS].map(([verb, spec]) => [verb, protoShape(spec)])));

export const RUNTIME_INPUTS: Surface = {
  name: 'answers of the runtime',
  schema: { shape, sample: {}, places: places(shape).filter(({ path }) => path.length > 1), typed: true },
  batch: 6,
  most: 1,
  disturbs: true,
  offer,
};
