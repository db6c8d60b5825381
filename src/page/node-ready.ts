// Whether the node is ready, and why not, in one sentence. Pure.
import type { NodeCondition } from '../core/node.ts';
import type { NowView, SignalView, WhyView } from './model.ts';

const FIXES: readonly (readonly [RegExp, string])[] = [
  [/network.{0,200}not ready|cni/i, 'Install or repair the CNI plugin: its configuration belongs in /etc/cni/net.d.'],
  [
    /runtime is down|not ready|runtime status/i,
    'Look at the runtime: systemctl status containerd; journalctl -u containerd.',
  ],
  [/PLEG/, 'The runtime does not list its containers in time: look at its load and log.'],
];

export function readyView(
  conditions: readonly NodeCondition[] | undefined,
  runtimeErrors: readonly string[],
  signals: readonly SignalView[],
): NowView['ready'] {
  const ready = conditions?.find((c) => c.type === 'Ready');
  const isReady = ready === undefined ? runtimeErrors.length === 0 : ready.status === 'True';
  if (!isReady) return { ready: false, why: notReady(ready, runtimeErrors) };
  const short = signals.filter((s) => s.met).map((s) => s.signal);
  const sentence =
    short.length > 0
      ? `The node is ready but short of ${short.join(', ')}.`
      : 'The node is ready: the runtime answers and nothing runs short.';
  return { ready: true, why: { sentence, evidence: [] } };
}

function notReady(condition: NodeCondition | undefined, runtimeErrors: readonly string[]): WhyView {
  const evidence = [...runtimeErrors, ...(condition?.message === undefined ? [] : [condition.message])];
  const text = evidence[0] ?? condition?.reason ?? 'no reason was given';
  const fix = FIXES.find(([words]) => words.test(text))?.[1];
  return {
    sentence: `The node is not ready: ${text}.`.replace('..', '.'),
    evidence: [...new Set(evidence)],
    ...(fix === undefined ? {} : { fix }),
  };
}
