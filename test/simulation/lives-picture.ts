// The lives of a run's pods as an SVG timeline: a row for each place on the node, which one pod after another takes.
import type { Band, Bar, Mark } from './lives.ts';

export type Drawn = { readonly bars: readonly Bar[]; readonly marks: readonly Mark[]; readonly bands: readonly Band[] };

const WIDTH = 1200;
const LEFT = 44;
const RIGHT = 14;
const TOP = 112;
const ROW = 16;
const COLOURS = { well: '#2f9e6e', badly: '#c0392b', life: '#c9d3de', fault: '#e8833a', text: '#33404d' } as const;
const MINUTE = 60_000;
/** Between the lines of the time axis: the first that gives no more than twelve of them. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440].map((minutes) => minutes * MINUTE);

export function picture({ bars, marks, bands }: Drawn, endMs: number): string {
  const rows = rowsOf([...bars.map((b) => b.pod), ...marks.map((m) => m.pod)]);
  const height = TOP + ROW * rows.length + 28;
  const x = (ms: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * Math.min(ms, endMs)) / endMs;
  const y = (pod: string): number => TOP + ROW * rows.indexOf(placeOf(pod));
  const box = (fromMs: number, toMs: number, top: number, tall: number, fill: string, title: string): string =>
    `<rect x="${x(fromMs).toFixed(1)}" y="${top}" width="${Math.max(1, x(toMs) - x(fromMs)).toFixed(1)}" height="${tall}" fill="${fill}"><title>${title}</title></rect>`;
  const parts = [
    ...axis(endMs, x, height),
    ...faults(
      bands.filter((b) => b.fromMs <= endMs),
      x,
      height,
    ),
    ...rows.map((place) => `<text x="6" y="${TOP + ROW * rows.indexOf(place) + 11}">${place}</text>`),
    ...livesOf(marks, endMs).map(({ pod, fromMs, toMs }) =>
      box(fromMs, toMs, y(pod) + 6, 3, COLOURS.life, `${pod}: ${at(fromMs)} to ${at(toMs)}`),
    ),
    ...bars
      .filter((b) => b.fromMs <= endMs)
      .map((b) => {
        const title = `${b.pod}/${b.container}: ${at(b.fromMs)} to ${at(b.toMs)}, exit code ${b.exitCode}`;
        return box(b.fromMs, b.toMs, y(b.pod) + 3, 9, b.exitCode === 0 ? COLOURS.well : COLOURS.badly, title);
      }),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="10" fill="${COLOURS.text}">
<rect width="100%" height="100%" fill="#fff"/>
${legend()}
${parts.join('\n')}
</svg>
`;
}

/** Static pods carry the node's name; `p3-7` is the eighth pod in the fourth place. */
const placeOf = (pod: string): string => pod.replace(/-\d+(-n1)?$/, '');

const rowsOf = (pods: readonly string[]): readonly string[] =>
  [...new Set(pods.map(placeOf))].sort((a, b) => Number(a.slice(1)) - Number(b.slice(1)));

/** From the first to the last thing that was done to each pod. */
function livesOf(marks: readonly Mark[], endMs: number): { pod: string; fromMs: number; toMs: number }[] {
  const lives = new Map<string, { pod: string; fromMs: number; toMs: number }>();
  for (const { pod, atMs, text } of marks) {
    if (atMs > endMs) continue;
    const life = lives.get(pod);
    if (life === undefined) lives.set(pod, { pod, fromMs: atMs, toMs: endMs });
    else if (text === 'delete' || text === 'static-remove') life.toMs = atMs;
  }
  return [...lives.values()];
}

function axis(endMs: number, x: (ms: number) => number, height: number): string[] {
  const step = STEPS.find((each) => endMs / each <= 12) ?? endMs;
  const times = Array.from({ length: Math.floor(endMs / step) + 1 }, (_, i) => i * step);
  return times.flatMap((ms) => [
    `<line x1="${x(ms).toFixed(1)}" x2="${x(ms).toFixed(1)}" y1="${TOP - 4}" y2="${height - 22}" stroke="#e6eaee"/>`,
    `<text x="${x(ms).toFixed(1)}" y="${height - 8}" text-anchor="middle">${ms / MINUTE} min</text>`,
  ]);
}

/** A name too near to the one before is left to the pointer. */
function faults(bands: readonly Band[], x: (ms: number) => number, height: number): string[] {
  let last = -Infinity;
  return bands.flatMap(({ fromMs, toMs, text }) => {
    const from = x(fromMs);
    const hasRoom = from - last >= 9;
    if (hasRoom) last = from;
    const wide = Math.max(1.5, x(toMs) - from).toFixed(1);
    return [
      `<rect x="${from.toFixed(1)}" y="${TOP - 4}" width="${wide}" height="${height - TOP - 18}" fill="${COLOURS.fault}" opacity=".25"><title>${text}, ${at(fromMs)}</title></rect>`,
      ...(hasRoom
        ? [`<text transform="translate(${(from + 3).toFixed(1)},${TOP - 8}) rotate(-45)" font-size="9">${text}</text>`]
        : []),
    ];
  });
}

function legend(): string {
  const items = [
    [COLOURS.well, 'runs, or ended well'],
    [COLOURS.badly, 'ended otherwise'],
    [COLOURS.life, 'the pod is wanted'],
    [COLOURS.fault, 'fault'],
  ] as const;
  return items
    .map(
      ([fill, text], i) =>
        `<rect x="${LEFT + 150 * i}" y="8" width="12" height="9" fill="${fill}"/><text x="${LEFT + 150 * i + 17}" y="16">${text}</text>`,
    )
    .join('\n');
}

const at = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
