// Which signals are wanted: as the text the bus is given, and as the test each arriving signal has to pass.
import { KubeletError } from '../errors.ts';
import type { Message } from './message.ts';

export type MatchRule = {
  readonly sender: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly arg0?: string;
  /** Signals of others count as the sender's own. */
  readonly fromAnybody?: true;
};

export function ruleText({ fromAnybody, sender, ...rule }: MatchRule): string {
  const from = fromAnybody === true ? {} : { sender };
  const parts = Object.entries({ type: 'signal', ...from, ...rule }).map(([key, value]) => {
    if (value.includes("'")) throw new KubeletError('invalid', `D-Bus match rule: ${key} contains a quote`);
    return `${key}='${value}'`;
  });
  return parts.join(',');
}

/**
 * `owner`: the unique name that has the rule's sender now. Signals of anybody else do not count, whatever they say, unless
 * the rule is for them, too.
 */
export function matches(rule: MatchRule, message: Message, owner: string | undefined): boolean {
  return (
    message.kind === 'signal' &&
    message.sender !== undefined &&
    (message.sender === owner || rule.fromAnybody === true) &&
    message.path === rule.path &&
    message.interface === rule.interface &&
    message.member === rule.member &&
    (rule.arg0 === undefined || message.body[0] === rule.arg0)
  );
}
