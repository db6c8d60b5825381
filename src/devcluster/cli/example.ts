// The example pod: a tiny web server in an image made on this machine.
import { request } from 'node:http';
import { stringify } from 'yaml';
import { parseTimeMs } from '../../core/time.ts';
import { recordsAt, textAt, type Json } from '../api/objects.ts';
import { callApi } from './client.ts';
import type { Paths } from './paths.ts';
import { EXAMPLE_IMAGE } from './runtime.ts';

const NAME = 'hello';
/** The shell stays and hears the signal: a first process without a handler for it would be deaf to it. */
const SCRIPT = [
  'mkdir -p /tmp/www',
  'echo "hello from $(hostname)" > /tmp/www/index.html',
  'httpd -f -p 8080 -h /tmp/www &',
  'trap "exit 0" TERM',
  'echo "serving on port 8080"',
  'wait',
  '',
].join('\n');

const examplePod = (): Json => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: NAME, namespace: 'default', labels: { app: NAME } },
  spec: {
    terminationGracePeriodSeconds: 2,
    containers: [
      {
        name: 'web',
        image: EXAMPLE_IMAGE,
        imagePullPolicy: 'IfNotPresent',
        command: ['sh', '-c', SCRIPT],
        ports: [{ containerPort: 8080 }],
        readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
      },
    ],
  },
});

export const exampleText = (): string => stringify(examplePod());

export type PodState = { readonly phase: string; readonly ready: boolean; readonly ip: string; readonly why: string };

export async function ensureExample(paths: Paths): Promise<void> {
  const found = await callApi(paths, 'GET', `/api/v1/namespaces/default/pods/${NAME}`);
  const finished = ['Succeeded', 'Failed'].includes(textAt(found.body, 'status', 'phase'));
  if (found.status === 200 && finished)
    await callApi(paths, 'DELETE', `/api/v1/namespaces/default/pods/${NAME}?gracePeriodSeconds=0`);
  if (found.status === 404 || finished) await callApi(paths, 'POST', '/api/v1/namespaces/default/pods', examplePod());
}

export async function exampleState(paths: Paths): Promise<PodState> {
  const { body } = await callApi(paths, 'GET', `/api/v1/namespaces/default/pods/${NAME}`);
  const conditions = recordsAt(body, 'status', 'conditions');
  const [container] = recordsAt(body, 'status', 'containerStatuses');
  const waiting = [textAt(container, 'state', 'waiting', 'reason'), textAt(container, 'state', 'waiting', 'message')];
  const ready = conditions.some((c) => c['type'] === 'Ready' && c['status'] === 'True');
  const unscheduled = conditions.find((c) => c['type'] === 'PodScheduled' && c['status'] === 'False');
  return {
    phase: textAt(body, 'status', 'phase'),
    ready,
    ip: textAt(body, 'status', 'podIP'),
    why: ready ? '' : [...waiting, textAt(unscheduled, 'message'), await lastWarning(paths)].filter(Boolean).join(': '),
  };
}

/** What went wrong with it last, if anything did. */
async function lastWarning(paths: Paths): Promise<string> {
  const query = `fieldSelector=${encodeURIComponent(`involvedObject.name=${NAME},type=Warning`)}`;
  const { body } = await callApi(paths, 'GET', `/api/v1/namespaces/default/events?${query}`);
  const last = recordsAt(body, 'items')
    .toSorted((a, b) => seenMs(a) - seenMs(b))
    .at(-1);
  return textAt(last, 'message');
}

const seenMs = (event: Json): number => parseTimeMs(textAt(event, 'lastTimestamp') || textAt(event, 'eventTime'));

/** Ready, and said so after `sinceMs`: what a node that was stopped said last stays in the API for a while. */
export async function nodeIsReady(paths: Paths, name: string, sinceMs = 0): Promise<{ ready: boolean; why: string }> {
  const { status, body } = await callApi(paths, 'GET', `/api/v1/nodes/${name}`);
  if (status !== 200) return { ready: false, why: 'not registered yet' };
  const ready = recordsAt(body, 'status', 'conditions').find((c) => c['type'] === 'Ready');
  const lease = await callApi(paths, 'GET', `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`);
  const heard = Math.max(
    parseTimeMs(textAt(ready, 'lastHeartbeatTime')),
    parseTimeMs(textAt(lease.body, 'spec', 'renewTime')),
  );
  if (heard < Math.floor(sinceMs / 1000) * 1000) return { ready: false, why: 'the kubelet has not reported yet' };
  return { ready: ready?.['status'] === 'True', why: textAt(ready, 'message') };
}

/** Whether the example really answers, whatever its status says. */
export function exampleAnswers(ip: string): Promise<boolean> {
  return new Promise((resolve) => {
    const outgoing = request({ host: ip, port: 8080, timeout: 1000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    outgoing.once('timeout', () => outgoing.destroy());
    outgoing.once('error', () => resolve(false));
    outgoing.once('close', () => resolve(false));
    outgoing.end();
  });
}
