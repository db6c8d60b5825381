// What a pod that is being stopped waits for. Pure.
import { humanSpan } from '../core/human.ts';
import { parseTimeMs } from '../core/time.ts';
import type { PodFacts, Rule, Why } from './facts.ts';
import { eventMs, eventText, forSpan, lastEvent, nextTry, quote } from './words.ts';

export const stopping: Rule = (facts) => {
  const { pod, worker } = facts;
  const deleted = pod.metadata.deletionTimestamp !== undefined;
  const phase = worker?.phase ?? 'syncing';
  if (!deleted && phase !== 'terminating') return undefined;
  if (phase === 'terminating') return containersEnd(facts);
  if (phase === 'terminated') return cleanUp(facts);
  if (phase === 'finished') return objectRemains(facts);
  return why(facts, 'Deleted', 'The pod was deleted and is about to be stopped.');
};

const why = (facts: PodFacts, cause: string, sentence: string, more: Partial<Why> = {}): Why => ({
  state: 'stopping',
  cause,
  sentence,
  evidence: lastErrorOf(facts),
  todo: '',
  ...more,
});

const lastErrorOf = ({ worker }: PodFacts): string[] =>
  worker?.lastError === undefined ? [] : [`failed ${worker.lastError.attempts} times: ${worker.lastError.message}`];

function containersEnd(facts: PodFacts): Why {
  const { worker, nowMs, status } = facts;
  const running = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])].filter(
    (s) => s.state.running !== undefined,
  );
  const names = running.map((s) => quote(s.name)).join(', ');
  const failed = lastEvent(facts, 'FailedKillPod');
  const leftMs = (worker?.sinceMs ?? nowMs) + (worker?.graceSeconds ?? 0) * 1000 - nowMs;
  if (failed !== undefined && leftMs < 0)
    return why(
      facts,
      'KillFailed',
      `The pod cannot be stopped: the runtime failed to end its containers${nextTry(facts)}.`,
      {
        state: 'failing',
        evidence: [eventText(failed), ...lastErrorOf(facts)],
        todo: 'Look at the log of the runtime; a process in uninterruptible sleep (state D) cannot be killed.',
      },
    );
  if (running.length === 0)
    return why(
      facts,
      'SandboxStopping',
      'The containers have ended; the network and the sandbox of the pod are being removed.',
    );
  const turn = facts.underWay.find((s) => s.name === 'turn');
  if (turn !== undefined)
    return why(
      facts,
      'StopQueued',
      `The pod waits for its turn to be stopped${forSpan(facts, turn.sinceMs)}: other pods are being stopped, and the processors are busy. Its grace period has not begun.`,
    );
  const hook = running.some(
    (s) => facts.pod.spec.containers.find((c) => c.name === s.name)?.lifecycle?.preStop !== undefined,
  );
  if (leftMs >= 0)
    return why(
      facts,
      'GracePeriod',
      `The pod is being stopped: container ${names} has ${humanSpan(leftMs)} left to end${hook ? ' (its preStop hook counts)' : ''}.`,
    );
  return why(
    facts,
    'StoppingLate',
    `The pod is being stopped: container ${names} did not end in its grace period of ${worker?.graceSeconds ?? 0} s and could not be killed${forSpan(facts, facts.nowMs + leftMs)}.`,
    {
      state: 'failing',
      todo: 'A process in uninterruptible sleep (a dead network disk, say) cannot be killed; look at the log of the runtime.',
    },
  );
}

function cleanUp(facts: PodFacts): Why {
  const { volumes } = facts;
  if (volumes.length > 0)
    return why(
      facts,
      'VolumesInUse',
      `The containers are stopped; the pod waits for its volumes to be unmounted: ${volumes.join('; ')}.`,
      {
        todo: 'See who still uses the volume; `umount` by hand only where its server is gone for good.',
      },
    );
  const step = facts.underWay.at(-1);
  const doing = step === undefined ? '' : ` (${step.name} for ${humanSpan(facts.nowMs - step.sinceMs)})`;
  return why(
    facts,
    'CleaningUp',
    `The containers are stopped; what is left of the pod on the node is being removed${doing}.`,
  );
}

function objectRemains({ pod, nowMs, events }: PodFacts): Why {
  const finalizers = pod.metadata.finalizers ?? [];
  const since = humanSpan(nowMs - parseTimeMs(pod.metadata.deletionTimestamp));
  if (finalizers.length > 0)
    return {
      state: 'stopping',
      cause: 'Finalizers',
      sentence: `The pod is gone from this node; its object stays because of the finalizers ${finalizers.map(quote).join(', ')}.`,
      evidence: [`deleted ${since} ago`],
      todo: 'Whoever owns the finalizer must remove it; this node waits for nothing.',
    };
  const last = events.at(-1);
  return {
    state: 'stopping',
    cause: 'ApiServer',
    sentence: 'The pod is gone from this node; the API server has not confirmed the deletion yet.',
    evidence: last === undefined ? [] : [`last event ${humanSpan(nowMs - eventMs(last))} ago: ${last.reason ?? ''}`],
    todo: 'Check that this node reaches the API server.',
  };
}
