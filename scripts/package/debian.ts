// A Debian package of a tree: control file, checksums, maintainer scripts, and the parts Debian's policy asks for.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ar, gzip, tar, type Entry } from './archive.ts';

export const PACKAGING = join(import.meta.dirname, '..', '..', 'packaging');
/** Debian's own variables say who packages; the project has no address. */
const { DEBFULLNAME = 'kubelet-ts maintainers', DEBEMAIL = 'kubelet-ts@localhost.localdomain' } = process.env;
const MAINTAINER = `${DEBFULLNAME} <${DEBEMAIL}>`;
const SCRIPTS = ['preinst', 'postinst', 'prerm', 'postrm'];

export type DebianPackage = {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  /** Further lines of the control file. */
  readonly control: Readonly<Record<string, string>>;
  readonly description: string;
  readonly entries: readonly Entry[];
  readonly epochSeconds: number;
};

export function debianPackage(of: DebianPackage): Buffer {
  const { name, version, architecture, epochSeconds } = of;
  const size = of.entries.reduce((sum, entry) => sum + ('data' in entry ? Math.ceil(entry.data.length / 1024) : 1), 0);
  const fields = {
    Package: name,
    Version: version,
    Architecture: architecture,
    Maintainer: MAINTAINER,
    'Installed-Size': String(size),
    ...of.control,
    Section: 'admin',
    Priority: 'optional',
    Description: of.description,
  };
  const control: Entry[] = [
    file(
      'control',
      Object.entries(fields)
        .map(([key, value]) => `${key}: ${value}\n`)
        .join(''),
    ),
    file('md5sums', md5sums(of.entries)),
    ...SCRIPTS.flatMap((script) => {
      const text = optional(join(PACKAGING, 'debian', `${name}.${script}`));
      return text === undefined ? [] : [{ ...file(script, text), mode: 0o755 }];
    }),
  ];
  return ar(
    [
      ['debian-binary', Buffer.from('2.0\n')],
      ['control.tar.gz', gzip(tar(control, epochSeconds))],
      ['data.tar.gz', gzip(tar(of.entries, epochSeconds), 6)],
    ],
    epochSeconds,
  );
}

/** What every package has below /usr/share. */
export function policyFiles(name: string, version: string, changes: string, epochSeconds: number): Entry[] {
  const overrides = optional(join(PACKAGING, 'debian', `${name}.lintian-overrides`));
  return [
    file(`usr/share/doc/${name}/copyright`, readFileSync(join(PACKAGING, 'debian', 'copyright'), 'utf8')),
    {
      ...file(`usr/share/doc/${name}/changelog.gz`, ''),
      data: gzip(Buffer.from(changelog(version, changes, epochSeconds))),
    },
    ...(overrides === undefined ? [] : [file(`usr/share/lintian/overrides/${name}`, overrides)]),
  ];
}

/** The section of CHANGELOG.md as Debian writes it. */
function changelog(version: string, changes: string, epochSeconds: number): string {
  const lines = changes.split('\n').filter((line) => line.startsWith('- '));
  const items = lines.length > 0 ? lines.map((line) => wrapped(line.slice(2))) : ['  * See CHANGELOG.md.'];
  const [day, date, month, year, time] = new Date(epochSeconds * 1000).toUTCString().replace(',', '').split(' ');
  return `kubelet-ts (${version}) stable; urgency=medium\n\n${items.join('\n')}\n\n -- ${MAINTAINER}  ${day}, ${date} ${month} ${year} ${time} +0000\n`;
}

/** An item of Debian's changelog, no line longer than 78. */
const wrapped = (text: string): string =>
  `  * ${text}`.replace(/(.{1,74})(?: |$)/g, (_, line: string) => `${line}\n    `).trimEnd();

export const file = (path: string, text: string): { path: string; mode: number; data: Buffer } => ({
  path,
  mode: 0o644,
  data: Buffer.from(text),
});

const md5sums = (entries: readonly Entry[]): string =>
  [...entries]
    .sort((a, b) => (a.path < b.path ? -1 : 1))
    .map((entry) => ('data' in entry ? `${createHash('md5').update(entry.data).digest('hex')}  ${entry.path}\n` : ''))
    .join('');

function optional(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined; // not every package has every script
  }
}
