// Which versions of CSI a driver may offer. Pure; upstream's words.

type Version = readonly [number, number, number];

const PATTERN = /^v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-+].*)?$/;

function parse(text: string): Version | undefined {
  const match = PATTERN.exec(text);
  return match === null ? undefined : [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
}

const compare = (a: Version, b: Version): number => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];

/** The highest version that is understood, or what is wrong with the list. */
export function highestVersion(versions: readonly string[]): { version: string } | { problem: string } {
  if (versions.length === 0) return { problem: 'Plugin returned an empty list for supported versions' };
  const parsed = versions.map(parse).filter((version) => version !== undefined);
  const usable = parsed.filter(([major]) => major <= 1).sort(compare);
  const best = usable.at(-1);
  const listed = versions.map((text) => `"${text}"`).join(' ');
  const none = (why: string): { problem: string } => ({
    problem: `None of the versions specified [${listed}] are supported. err=${why}`,
  });
  if (best === undefined)
    return none(
      `could not find a highest supported version from versions (${versions.join(' ')}) reported by this driver`,
    );
  if (best[0] !== 1) return none(`one of the CSI driver versions reported by this driver needs to be in the 1.x range`);
  return { version: best.join('.') };
}

export function isHigher(a: string, b: string): boolean {
  const [x, y] = [parse(a), parse(b)];
  return x !== undefined && y !== undefined && compare(x, y) > 0;
}
