// Imports point one way: lib ← core ← {kube, cri, host} ← features ← assembly ← kubelet.ts ← main.ts. Feature folders do not import
// each other: the composition root fits them together. Types of a neighbour may be imported where listed below.
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const root = join(import.meta.dirname, '..', 'src');
const RANK: Record<string, number> = {
  lib: 0,
  core: 1,
  kube: 2,
  cri: 2,
  host: 2,
  assembly: 4,
  'kubelet.ts': 5,
  'main.ts': 6,
};
const FEATURE = 3;

const partOf = (path: string): string => path.split('/')[0] ?? '';
const rankOf = (part: string): number => RANK[part] ?? FEATURE;
const problems: string[] = [];

for (const file of globSync(join(root, '**/*.ts'))) {
  const from = relative(root, file);
  if (from.endsWith('.test.ts')) continue;
  const text = readFileSync(file, 'utf8');
  for (const match of text.matchAll(/^(import|export) (type )?[^;]*?from '(\.[^']+)';/gms)) {
    const to = relative(root, join(dirname(file), match[3] ?? ''));
    const [a, b] = [partOf(from), partOf(to)];
    if (a === b) continue;
    if (rankOf(b) > rankOf(a)) problems.push(`${from} imports ${to}: ${b} is a layer above ${a}`);
    else if (rankOf(a) === rankOf(b) && match[2] === undefined)
      problems.push(`${from} imports ${to}: ${a} and ${b} are siblings; declare the interface you need`);
  }
}
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
console.log('layers: imports point one way');
