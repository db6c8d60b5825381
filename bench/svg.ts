// A line drawing as SVG: a handful of series over a common axis, nothing more.

export type Series = { readonly name: string; readonly values: readonly (number | undefined)[] };

const [WIDTH, HEIGHT, LEFT, TOP, LEGEND] = [900, 420, 50, 40, 190] as const;
const COLOURS = ['#1b6ca8', '#c0392b', '#2e8b57', '#8e44ad', '#d68910', '#34495e', '#16a085', '#7f8c8d'];

export function drawLines(title: string, series: readonly Series[]): string {
  const count = Math.max(2, ...series.map((s) => s.values.length));
  const top = niceTop(Math.max(1, ...series.flatMap((s) => s.values.map((v) => v ?? 0))));
  const x = (i: number): number => LEFT + (i * (WIDTH - LEFT - LEGEND)) / (count - 1);
  const y = (v: number): number => TOP + (HEIGHT - 2 * TOP) * (1 - v / top);
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => gridLine(share * top, y(share * top)));
  const lines = series.map((s, i) => line(s, i, x, y));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    `<text x="${LEFT}" y="22" font-size="15">${escaped(title)}</text>`,
    ...grid,
    ...lines,
    '</svg>\n',
  ].join('\n');
}

function line({ name, values }: Series, index: number, x: (i: number) => number, y: (v: number) => number): string {
  const colour = COLOURS[index % COLOURS.length];
  const points = values.flatMap((v, i) => (v === undefined || Number.isNaN(v) ? [] : [{ x: x(i), y: y(v), v }]));
  const path = points.map((p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`).join(' ');
  const dots = points
    .map((p) => `<circle cx="${p.x.toFixed(1)}" cy="${p.y.toFixed(1)}" r="2.5" fill="${colour}"/>`)
    .join('');
  const last = points.at(-1)?.v;
  const label = `${name}${last === undefined ? '' : ` ${last.toFixed(2)}`}`;
  const row = TOP + index * 18;
  return [
    `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="1.5"/>${dots}`,
    `<rect x="${WIDTH - LEGEND + 12}" y="${row - 9}" width="10" height="10" fill="${colour}"/>`,
    `<text x="${WIDTH - LEGEND + 28}" y="${row}">${escaped(label)}</text>`,
  ].join('\n');
}

const gridLine = (value: number, y: number): string =>
  `<line x1="${LEFT}" x2="${WIDTH - LEGEND}" y1="${y}" y2="${y}" stroke="#ddd"/><text x="${LEFT - 8}" y="${y + 4}" text-anchor="end" fill="#555">${value.toFixed(1)}</text>`;

/** The next round number: 1, 2, 4, 5, 10, 20, … */
function niceTop(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10].map((n) => n * unit).find((n) => n >= value) ?? value;
}

const escaped = (text: string): string => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
