// Puts the kernel's out-of-memory lines together: one line says whose limit was hit and who was chosen, a later one that
// the process was killed. Pure: lines in, kills out.

export type OomKill = {
  readonly pid: number;
  readonly process: string;
  /** The cgroup whose limit was hit; `/` when the machine itself ran out. */
  readonly limitPath: string;
  /** The cgroup the process lived in; `/` when the kernel did not say. */
  readonly victimPath: string;
};

type Pending = { readonly limitPath: string; readonly victimPath: string };

const CHOSEN =
  /oom-kill:constraint=\w+,nodemask=[^,]*,cpuset=.*,mems_allowed=[\d,-]*,(?:oom_memcg=(.*)|global_oom),task_memcg=(.*),task=.*,pid=\d+,uid=\d+/;
const CHOSEN_BEFORE_5_0 = /Task in (.*) killed as a result of limit of (.*)/;
const KILLED = /Killed process (\d+),? (?:UID \d+,? )?\((.+?)\)/;
const BEGINS = 'invoked oom-killer:';
const MACHINE: Pending = { limitPath: '/', victimPath: '/' };

export class OomMessages {
  #pending: Pending | undefined;

  /** One kernel message; the kill it completes, if any. */
  push(message: string): OomKill | undefined {
    if (message.includes(BEGINS)) {
      this.#pending = MACHINE;
      return undefined;
    }
    const chosen = CHOSEN.exec(message);
    if (chosen !== null) {
      const [, limitPath = '/', victimPath = '/'] = chosen;
      this.#pending = { limitPath, victimPath };
      return undefined;
    }
    const older = CHOSEN_BEFORE_5_0.exec(message);
    if (older !== null) {
      const [, victimPath = '/', limitPath = '/'] = older;
      this.#pending = { limitPath, victimPath };
      return undefined;
    }
    const killed = KILLED.exec(message);
    if (killed === null || this.#pending === undefined) return undefined;
    // Kept for the kills that follow when a whole cgroup goes (memory.oom.group).
    const [, pid, process = ''] = killed;
    return { pid: Number(pid), process, ...this.#pending };
  }
}

/** The text of one /dev/kmsg record (`6,1234,5678,-;text`), without the fields that follow on further lines. */
export function kmsgText(record: string): string {
  const start = record.indexOf(';');
  const end = record.indexOf('\n');
  return start < 0 ? '' : record.slice(start + 1, end < 0 ? undefined : end);
}
