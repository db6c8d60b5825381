// What a fake container does with its command: the handful of busybox command lines that tests use, without a process.

export type Program = {
  /** Ends by itself after this long; undefined means it runs until it is stopped. */
  readonly endsAfterMs: number | undefined;
  readonly exitCode: number;
  readonly output: string;
  /** Exit code on SIGTERM; undefined when the signal is ignored, as PID 1 does without a handler. */
  readonly onTerm: number | undefined;
};

const FOREVER: Program = { endsAfterMs: undefined, exitCode: 0, output: '', onTerm: undefined };

/** Undefined when there is no such program. */
export function programOf(argv: readonly string[]): Program | undefined {
  const [name = '', ...args] = argv;
  switch (name.replace(/^\/bin\//, '')) {
    case '':
      return FOREVER;
    case 'true':
      return { ...FOREVER, endsAfterMs: 0 };
    case 'false':
      return { ...FOREVER, endsAfterMs: 0, exitCode: 1 };
    case 'sleep':
      return { ...FOREVER, endsAfterMs: Number(args[0] ?? 0) * 1000 };
    case 'echo':
      return { ...FOREVER, endsAfterMs: 0, output: `${args.join(' ')}\n` };
    case 'sh':
      return args[0] === '-c' ? shell(args[1] ?? '') : FOREVER;
    default:
      return undefined;
  }
}

/** `echo`, `sleep`, `exit` and `trap 'exit N' TERM` in a row. A trailing `wait` waits for a sleep put in background. */
function shell(script: string): Program {
  let endsAfterMs = 0;
  let exitCode = 0;
  let output = '';
  let onTerm: number | undefined;
  const rest = script.replace(/trap '([^']*)' TERM/g, (_, handler: string) => {
    onTerm = Number(/exit (\d+)/.exec(handler)?.[1] ?? 0);
    return '';
  });
  for (const part of rest.split(';').map((p) => p.trim())) {
    const sleep = /^sleep ([\d.]+)/.exec(part);
    const exit = /^exit (\d+)$/.exec(part);
    const echo = /^echo (.*)$/.exec(part);
    if (sleep !== null) endsAfterMs += Number(sleep[1]) * 1000;
    else if (echo !== null) output += `${echo[1]}\n`;
    else if (exit !== null) {
      exitCode = Number(exit[1]);
      break;
    }
  }
  return { endsAfterMs, exitCode, output, onTerm };
}
