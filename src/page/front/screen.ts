// A terminal's screen: what programs write becomes rows of cells. The control sequences of shells, pagers and editors.

export type Cell = { char: string; style: string };

const BLANK: Cell = { char: ' ', style: '' };
const MAX_ROWS = 2000;
/** Of colours; counts are bounded by the screen. */
const MAX_PARAMETER = 255;
const MAX_PARAMETERS = 32;
/** CSI, OSC, character sets, and escapes of one letter. */
const SEQUENCE = new RegExp(
  String.raw`^\u001b(?:\[([0-9;?>=!]*)([@-~])|\]([^\u0007\u001b]*)(?:\u0007|\u001b\\)|[()][0-9A-Za-z]|([=>78cDEHM]))`,
);

export class Screen {
  columns: number;
  rows: number;
  /** All lines, the last `rows` of which are the screen. */
  lines: Cell[][] = [];
  x = 0;
  y = 0;
  #style = '';
  #pending = '';
  #saved = { x: 0, y: 0 };
  #other: { lines: Cell[][]; x: number; y: number } | undefined;
  #top = 0;
  #bottom: number;

  constructor(columns: number, rows: number) {
    this.columns = columns;
    this.rows = rows;
    this.#bottom = rows - 1;
    this.#pad();
  }

  resize(columns: number, rows: number): void {
    this.columns = columns;
    this.rows = rows;
    this.#top = 0;
    this.#bottom = rows - 1;
    this.#pad();
    this.y = Math.min(this.y, rows - 1);
    this.x = Math.min(this.x, columns - 1);
  }

  write(text: string): void {
    let rest = this.#pending + text;
    this.#pending = '';
    while (rest !== '') {
      if (rest.startsWith('\x1b')) {
        const found = SEQUENCE.exec(rest);
        if (found === null) {
          if (rest.length > 64) rest = rest.slice(1);
          else {
            this.#pending = rest;
            return;
          }
          continue;
        }
        rest = rest.slice(found[0].length);
        if (found[2] !== undefined) this.#control(found[2], found[1] ?? '');
        else if (found[4] !== undefined) this.#escape(found[4]);
        continue;
      }
      const char = String.fromCodePoint(rest.codePointAt(0) ?? 32);
      rest = rest.slice(char.length);
      this.#put(char);
    }
  }

  /** The rows on the screen now begin here. */
  get start(): number {
    return Math.max(0, this.lines.length - this.rows);
  }

  #pad(): void {
    while (this.lines.length < this.rows) this.lines.push([]);
  }

  #line(): Cell[] {
    const line = this.lines[this.start + this.y] ?? [];
    this.lines[this.start + this.y] = line;
    return line;
  }

  #put(char: string): void {
    switch (char) {
      case '\n':
        return this.#down();
      case '\r':
        this.x = 0;
        return;
      case '\b':
        this.x = Math.max(0, this.x - 1);
        return;
      case '\t':
        this.x = Math.min(this.columns - 1, (Math.floor(this.x / 8) + 1) * 8);
        return;
      default:
        if (char < ' ') return;
    }
    if (this.x >= this.columns) {
      this.x = 0;
      this.#down();
    }
    const line = this.#line();
    while (line.length < this.x) line.push({ ...BLANK });
    line[this.x++] = { char, style: this.#style };
  }

  #down(): void {
    if (this.y !== this.#bottom) {
      this.y = Math.min(this.rows - 1, this.y + 1);
      return;
    }
    if (this.#top === 0 && this.#bottom === this.rows - 1) {
      this.lines.push([]);
      if (this.#other !== undefined || this.lines.length > MAX_ROWS) this.lines.shift();
    } else this.#scroll(this.#top, 1);
  }

  #scroll(from: number, count: number): void {
    this.lines.splice(this.start + from, count);
    const end = this.lines.length - (this.rows - 1 - this.#bottom) + count;
    for (let i = 0; i < count; i++) this.lines.splice(Math.min(end, this.start + this.#bottom), 0, []);
  }

  #insert(at: number, count: number): void {
    const { start } = this;
    this.lines.splice(start + this.#bottom - count + 1, count);
    for (let i = 0; i < count; i++) this.lines.splice(start + at, 0, []);
  }

  #escape(letter: string): void {
    if (letter === '7') this.#saved = { x: this.x, y: this.y };
    if (letter === '8') ({ x: this.x, y: this.y } = this.#saved);
    if (letter === 'M') {
      if (this.y === this.#top) this.#insert(this.#top, 1);
      else this.y = Math.max(0, this.y - 1);
    }
    if (letter === 'c') {
      this.lines = [];
      this.x = this.y = 0;
      this.#pad();
    }
  }

  #control(letter: string, text: string): void {
    // More than the screen has is nothing more.
    const most = Math.max(this.columns, this.rows, MAX_PARAMETER);
    const numbers = text
      .replace(/^[?>=!]/, '')
      .split(';', MAX_PARAMETERS)
      .map((number) => Math.min(Number(number) || 0, most));
    const n = Math.max(1, numbers[0] ?? 1);
    if (letter === 'm') this.#graphics(numbers);
    else if (letter === 'h' || letter === 'l') {
      if (text === '?1049' || text === '?47') this.#alternate(letter === 'h');
    } else if (!this.#move(letter, n, numbers[1])) this.#edit(letter, n, numbers);
  }

  #move(letter: string, n: number, second: number | undefined): boolean {
    switch (letter) {
      case 'A':
        this.y = Math.max(0, this.y - n);
        return true;
      case 'B':
        this.y = Math.min(this.rows - 1, this.y + n);
        return true;
      case 'C':
        this.x = Math.min(this.columns - 1, this.x + n);
        return true;
      case 'D':
        this.x = Math.max(0, this.x - n);
        return true;
      case 'G':
        this.x = Math.min(this.columns, n) - 1;
        return true;
      case 'd':
        this.y = Math.min(this.rows, n) - 1;
        return true;
      case 'H':
      case 'f':
        this.y = Math.min(this.rows, n) - 1;
        this.x = Math.min(this.columns, Math.max(1, second ?? 1)) - 1;
        return true;
      default:
        return false;
    }
  }

  #edit(letter: string, n: number, numbers: readonly number[]): void {
    const line = this.#line();
    switch (letter) {
      case 'J':
        return this.#eraseScreen(numbers[0] ?? 0);
      case 'K':
        return this.#eraseLine(line, numbers[0] ?? 0);
      case 'P':
        line.splice(this.x, n);
        return;
      case '@':
        while (line.length < this.x) line.push({ ...BLANK });
        line.splice(this.x, 0, ...Array.from({ length: Math.min(n, this.columns) }, () => ({ ...BLANK })));
        line.length = Math.min(line.length, this.columns);
        return;
      case 'X':
        for (let i = this.x; i < Math.min(line.length, this.x + n); i++) line[i] = { ...BLANK };
        return;
      case 'L':
        return this.#isInRegion() ? this.#insert(this.y, Math.min(n, this.#bottom - this.y + 1)) : undefined;
      case 'M':
        return this.#isInRegion() ? this.#scroll(this.y, Math.min(n, this.#bottom - this.y + 1)) : undefined;
      case 'r':
        return this.#region(n - 1, Math.min(this.rows, numbers[1] || this.rows) - 1);
      default:
    }
  }

  #isInRegion(): boolean {
    return this.y >= this.#top && this.y <= this.#bottom;
  }

  /** One of less than two rows is none. */
  #region(top: number, bottom: number): void {
    if (top >= bottom) return;
    this.#top = top;
    this.#bottom = bottom;
    this.x = this.y = 0;
  }

  #eraseLine(line: Cell[], how: number): void {
    if (how === 0) line.length = Math.min(line.length, this.x);
    else if (how === 2) line.length = 0;
    else for (let i = 0; i <= Math.min(this.x, line.length - 1); i++) line[i] = { ...BLANK };
  }

  #eraseScreen(how: number): void {
    const { start } = this;
    const from = how === 0 ? this.y + 1 : 0;
    const to = how === 1 ? this.y : this.rows;
    if (how !== 2 && how !== 3) this.#eraseLine(this.#line(), how);
    for (let i = from; i < to; i++) this.lines[start + i] = [];
  }

  #alternate(on: boolean): void {
    if (on && this.#other === undefined) {
      this.#other = { lines: this.lines, x: this.x, y: this.y };
      this.lines = [];
      this.#pad();
      this.x = this.y = 0;
    } else if (!on && this.#other !== undefined) {
      ({ lines: this.lines, x: this.x, y: this.y } = this.#other);
      this.#other = undefined;
    }
  }

  #graphics(numbers: readonly number[]): void {
    let names = this.#style === '' ? [] : this.#style.split(' ');
    const without = (prefix: string): string[] => names.filter((s) => !s.startsWith(prefix));
    for (let i = 0; i < numbers.length; i++) {
      const n = numbers[i] ?? 0;
      if (n === 0) names = [];
      else if (n === 1) names = [...without('bold'), 'bold'];
      else if (n === 4) names = [...without('under'), 'under'];
      else if (n === 7) names = [...without('inverse'), 'inverse'];
      else if (n === 22) names = without('bold');
      else if (n === 24) names = without('under');
      else if (n === 27) names = without('inverse');
      else if ((n >= 30 && n <= 37) || (n >= 90 && n <= 97)) names = [...without('fg'), `fg${n % 10}`];
      else if (n === 39) names = without('fg');
      else if ((n >= 40 && n <= 47) || (n >= 100 && n <= 107)) names = [...without('bg'), `bg${n % 10}`];
      else if (n === 49) names = without('bg');
      else if (n === 38 || n === 48) i += numbers[i + 1] === 5 ? 2 : 4;
    }
    this.#style = names.join(' ');
  }
}
