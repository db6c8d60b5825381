// The bill of materials, SPDX 2.3 as JSON: the program, the one library it bundles, Node and what Node is built from.
import { createHash } from 'node:crypto';

export type Material = {
  readonly version: string;
  readonly arch: string;
  readonly commit: string;
  readonly epochSeconds: number;
  readonly nodeVersion: string;
  /** As `process.versions` says, without Node itself. */
  readonly nodeParts: Readonly<Record<string, string>>;
  readonly nodeSha256: string;
  readonly yamlVersion: string;
};

/** Of the parts of Node whose licence is not the one of Node. */
const LICENCES: Readonly<Record<string, string>> = {
  acorn: 'MIT',
  ada: 'MIT OR Apache-2.0',
  ares: 'MIT',
  brotli: 'MIT',
  icu: 'Unicode-3.0',
  llhttp: 'MIT',
  nghttp2: 'MIT',
  nghttp3: 'MIT',
  ngtcp2: 'MIT',
  openssl: 'Apache-2.0',
  simdjson: 'Apache-2.0',
  sqlite: 'blessing',
  uv: 'MIT',
  v8: 'BSD-3-Clause',
  zlib: 'Zlib',
  zstd: 'BSD-3-Clause',
};
/** Numbers of interfaces and of data, not of software. */
const NO_PARTS = ['modules', 'napi', 'cldr', 'tz', 'unicode', 'uvwasi'];

export function sbom(of: Material): string {
  const name = `kubelet-ts-${of.version}-linux-${of.arch}`;
  const parts = Object.entries(of.nodeParts).filter(([part]) => !NO_PARTS.includes(part));
  const packages = [
    entry('kubelet-ts', of.version, 'Apache-2.0', 'NOASSERTION'),
    entry('yaml', of.yamlVersion, 'ISC', `https://registry.npmjs.org/yaml/-/yaml-${of.yamlVersion}.tgz`),
    {
      ...entry('node', of.nodeVersion, 'MIT', `https://nodejs.org/dist/v${of.nodeVersion}/`),
      checksums: [{ algorithm: 'SHA256', checksumValue: of.nodeSha256 }],
    },
    ...parts.map(([part, version]) => entry(`node-${part}`, version, LICENCES[part] ?? 'NOASSERTION', 'NOASSERTION')),
  ];
  const relation = (from: string, type: string, to: string): object => ({
    spdxElementId: from,
    relationshipType: type,
    relatedSpdxElement: to,
  });
  const document = {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name,
    documentNamespace: `https://spdx.org/spdxdocs/${name}-${createHash('sha256').update(JSON.stringify(of)).digest('hex')}`,
    creationInfo: {
      created: new Date(of.epochSeconds * 1000).toISOString().replace('.000Z', 'Z'),
      creators: ['Tool: kubelet-ts-package'],
      comment: of.commit === '' ? 'built outside of a clone' : `commit ${of.commit}`,
    },
    packages,
    relationships: [
      relation('SPDXRef-DOCUMENT', 'DESCRIBES', idOf('kubelet-ts')),
      relation(idOf('kubelet-ts'), 'CONTAINS', idOf('yaml')),
      relation(idOf('kubelet-ts'), 'CONTAINS', idOf('node')),
      ...parts.map(([part]) => relation(idOf('node'), 'CONTAINS', idOf(`node-${part}`))),
    ],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

const idOf = (name: string): string => `SPDXRef-Package-${name.replace(/[^A-Za-z0-9.-]/g, '-')}`;

const entry = (name: string, version: string, licence: string, location: string): object => ({
  SPDXID: idOf(name),
  name,
  versionInfo: version,
  downloadLocation: location,
  filesAnalyzed: false,
  licenseConcluded: licence,
  licenseDeclared: licence,
  copyrightText: 'NOASSERTION',
});
