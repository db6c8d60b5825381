// Files of the node as inputs: manifests, and the configuration that is read again.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CONFIG_API_VERSION, CONFIG_FIELDS, CONFIG_KIND } from '../../src/config/config-fields.ts';
import { NODE_NAME, type AgentWorld } from './agent-world.ts';
import { described, type Input } from './inputs.ts';
import { isSettled, NAMESPACE, podPlaces, PODS, SAMPLE, record, within } from './pod-inputs.ts';
import { apiShape, configShape, places } from './shapes.ts';
import type { Surface } from './surface.ts';
import { jsonBytes } from './values.ts';

const SAID_WITHIN_MS = 8000;
const GONE_WITHIN_MS = 10_000;
let count = 0;

const mirrorOf = (name: string): string => `${name}-${NODE_NAME}`;

async function offerManifests(world: AgentWorld, inputs: readonly Input[]): Promise<readonly string[]> {
  const files = new Map(inputs.map((input) => [`static-${count++}`, input]));
  const names = [...files.keys()];
  const folders = world.podFolders().length;
  for (const [name, input] of files) {
    const made = record(input.make());
    const spec = record(made['spec']);
    const whole = { ...made, metadata: { ...record(made['metadata']), name, namespace: NAMESPACE }, spec };
    writeFileSync(join(world.manifests, `${name}.json`), jsonBytes(whole));
  }
  const isSaid = (name: string): boolean => isSettled(world, mirrorOf(name)) || world.logHas(`${name}.json`);
  await within(world, SAID_WITHIN_MS, () => names.every(isSaid));
  if (!world.runs) return [];
  const wrong = names
    .filter((name) => !isSaid(name))
    .map((name) => `says nothing: ${described(files.get(name) as Input)}\n${world.excerpt(mirrorOf(name))}`);
  for (const name of names) rmSync(join(world.manifests, `${name}.json`));
  const isGone = (): boolean =>
    names.every((name) => world.api.get(PODS, `${NAMESPACE}/${mirrorOf(name)}`) === undefined) &&
    world.podFolders().length <= folders + 1;
  if (!(await within(world, GONE_WITHIN_MS, isGone)) && world.runs)
    wrong.push(`pods of manifests do not go: ${names.join(', ')}; folders ${world.podFolders().join(', ')}`);
  return wrong;
}

/** A static pod refers to no other object. */
const sample = {
  ...SAMPLE,
  spec: {
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 1,
    volumes: [{ name: 'usual', emptyDir: {} }],
    containers: [
      {
        ...record((record(SAMPLE['spec'])['containers'] as readonly unknown[])[0]),
        env: [{ name: 'A', value: 'xxxxxxxxxx' }],
      },
    ],
  },
};

export const MANIFEST_INPUTS: Surface = {
  name: 'manifests',
  schema: { shape: apiShape('Pod'), sample, places: podPlaces },
  batch: 12,
  most: 2,
  offer: offerManifests,
};

/** The agent reads its configuration again and says what is wrong with it, or that it takes a restart. */
async function offerConfiguration(world: AgentWorld, inputs: readonly Input[]): Promise<readonly string[]> {
  const file = join(world.dir, 'config.yaml');
  const wrong: string[] = [];
  const usual = world.configuration;
  for (const input of inputs) {
    const head = { apiVersion: CONFIG_API_VERSION, kind: CONFIG_KIND };
    const own = jsonBytes({ ...record(input.make()), ...head });
    world.look();
    world.recent = '';
    writeFileSync(file, own);
    process.kill(world.kubelet.pid, 'SIGHUP');
    const isSaid = await within(world, SAID_WITHIN_MS, () => world.logHas('configuration'));
    if (!isSaid && world.runs) wrong.push(`says nothing: ${described(input)}`);
    writeFileSync(file, usual);
    if (!world.runs) return wrong;
    world.recent = '';
    process.kill(world.kubelet.pid, 'SIGHUP');
    await within(world, SAID_WITHIN_MS, () => world.logHas('configuration'));
  }
  return wrong;
}

const configuration = configShape('KubeletConfiguration', CONFIG_FIELDS);

export const CONFIGURATION_INPUTS: Surface = {
  name: 'configuration',
  schema: { shape: configuration, sample: {}, places: places(configuration) },
  batch: 8,
  most: 2,
  trusted: true,
  disturbs: true,
  offer: offerConfiguration,
};
