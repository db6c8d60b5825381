// Signals a Linux container may ask to be stopped with.
const PLAIN =
  'ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP ' +
  'TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ';

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i);

export const STOP_SIGNALS: readonly string[] = [
  ...PLAIN.split(' ').map((name) => `SIG${name}`),
  ...range(16).map((i) => (i === 0 ? 'SIGRTMIN' : `SIGRTMIN+${i}`)),
  ...range(15).map((i) => (i === 14 ? 'SIGRTMAX' : `SIGRTMAX-${14 - i}`)),
].sort();
