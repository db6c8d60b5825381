// Writes TypeScript types and field tables from our own .proto files: `src/**/proto/x.proto` → `src/**/gen/x.ts`.
// Only the subset we use is understood; anything else is an error. int64 fields marked `// bigint` become bigint.
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';

type Field = {
  no: number;
  name: string;
  jsName: string;
  type: string;
  repeated: boolean;
  optional: boolean;
  bigint: boolean;
};
type Message = { name: string; fields: Field[] };
type EnumType = { name: string; values: [string, number][] };
type Rpc = { service: string; name: string; request: string; response: string; stream: boolean };
type File = { pkg: string; messages: Message[]; enums: EnumType[]; rpcs: Rpc[] };

const SCALARS: Record<string, string> = {
  string: 'string',
  bytes: 'Uint8Array',
  bool: 'boolean',
  int32: 'number',
  int64: 'number',
  uint32: 'number',
  uint64: 'number',
  double: 'number',
  fixed64: 'bigint',
};

const camel = (name: string): string => name.replace(/_([a-zA-Z0-9])/g, (_, c: string) => c.toUpperCase());

function parse(text: string, path: string): File {
  const file: File = { pkg: '', messages: [], enums: [], rpcs: [] };
  let block: { kind: 'message' | 'enum' | 'service'; name: string } | undefined;
  for (const [i, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    const fail = (): never => {
      throw new Error(`${path}:${i + 1}: cannot read: ${line}`);
    };
    const code = line.replace(/\/\/.*$/, '').trim();
    if (code === '' || code.startsWith('syntax')) continue;
    let m: RegExpExecArray | null;
    if ((m = /^package ([\w.]+);$/.exec(code))) file.pkg = m[1]!;
    else if ((m = /^(message|enum|service) (\w+) \{(\})?$/.exec(code))) {
      block = { kind: m[1] as 'message', name: m[2]! };
      if (block.kind === 'message') file.messages.push({ name: block.name, fields: [] });
      if (block.kind === 'enum') file.enums.push({ name: block.name, values: [] });
      if (m[3] !== undefined) block = undefined;
    } else if (code === '}') block = undefined;
    else if (
      block?.kind === 'message' &&
      (m = /^(repeated |optional )?(map<string, ?string>|[\w.]+) (\w+) = (\d+);$/.exec(code))
    )
      file.messages.at(-1)!.fields.push({
        no: Number(m[4]),
        name: m[3]!,
        jsName: camel(m[3]!),
        type: m[2]!.startsWith('map') ? 'map' : m[2]!,
        repeated: m[1] === 'repeated ',
        optional: m[1] === 'optional ',
        bigint: /\/\/.*\bbigint\b/.test(line),
      });
    else if (block?.kind === 'enum' && (m = /^(\w+) = (\d+);$/.exec(code)))
      file.enums.at(-1)!.values.push([m[1]!, Number(m[2])]);
    else if (block?.kind === 'service' && (m = /^rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\);$/.exec(code)))
      file.rpcs.push({ service: block.name, name: m[1]!, request: m[2]!, response: m[4]!, stream: m[3] !== undefined });
    else fail();
  }
  return file;
}

function emit(file: File, source: string, libPath: string): string {
  const enums = new Set(file.enums.map((e) => e.name));
  const known = new Set(file.messages.map((m) => m.name));
  const tsType = (f: Field): string => {
    const base = f.type === 'map' ? 'Record<string, string>' : f.bigint ? 'bigint' : (SCALARS[f.type] ?? f.type);
    return f.repeated ? `${base}[]` : base;
  };
  let out = `// Generated from ${source} by scripts/generate-proto.ts. Do not edit.\nimport type { FieldSpec, MessageType } from '${libPath}/proto/codec.ts';\n`;
  if (file.rpcs.length > 0) out += `import type { Rpc } from '${libPath}/grpc/rpc.ts';\n`;
  out += '\n';
  for (const e of file.enums) {
    out += `export const ${e.name} = {\n${e.values.map(([n, v]) => `  ${n}: ${v},\n`).join('')}} as const;\nexport type ${e.name} = (typeof ${e.name})[keyof typeof ${e.name}];\n\n`;
  }
  for (const m of file.messages) {
    out += `export type ${m.name} = {\n`;
    for (const f of m.fields) {
      if (SCALARS[f.type] === undefined && f.type !== 'map' && !enums.has(f.type) && !known.has(f.type))
        throw new Error(`${source}: ${m.name}.${f.name}: no type ${f.type}`);
      out += `  ${f.jsName}${known.has(f.type) && !f.repeated ? '?: ' : ': '}${tsType(f)}${known.has(f.type) && !f.repeated ? ' | undefined' : ''};\n`;
    }
    out += `};\n\n`;
  }
  for (const m of file.messages) {
    const rows = m.fields.map((f) => {
      const type =
        f.type === 'map'
          ? "'map'"
          : f.bigint
            ? "'bigint64'"
            : enums.has(f.type)
              ? "'enum'"
              : SCALARS[f.type] !== undefined
                ? `'${f.type}'`
                : `${f.type}.spec`;
      return `    { no: ${f.no}, name: '${f.jsName}', type: ${type}${f.repeated ? ', repeated: true' : ''} },\n`;
    });
    out += `const ${m.name}Fields = (): readonly FieldSpec[] => (${m.name}Table ??= [\n${rows.join('')}  ]);\nlet ${m.name}Table: readonly FieldSpec[] | undefined;\nexport const ${m.name}: MessageType<${m.name}> = { spec: { name: '${file.pkg}.${m.name}', fields: ${m.name}Fields } };\n\n`;
  }
  for (const service of new Set(file.rpcs.map((r) => r.service))) {
    out += `export const ${service} = {\n`;
    for (const r of file.rpcs.filter((x) => x.service === service)) {
      out += `  ${r.name[0]!.toLowerCase()}${r.name.slice(1)}: { path: '/${file.pkg}.${service}/${r.name}', request: ${r.request}, response: ${r.response} } satisfies Rpc<${r.request}, ${r.response}>,\n`;
    }
    out += `} as const;\n\n`;
  }
  return out;
}

const root = join(import.meta.dirname, '..');
for (const path of globSync(join(root, 'src/**/proto/*.proto'))) {
  const target = join(dirname(path), '..', 'gen', `${basename(path, '.proto')}.ts`);
  mkdirSync(dirname(target), { recursive: true });
  const lib = relative(dirname(target), join(root, 'src/lib'));
  writeFileSync(target, emit(parse(readFileSync(path, 'utf8'), relative(root, path)), relative(root, path), lib));
  console.log(relative(root, target));
}
