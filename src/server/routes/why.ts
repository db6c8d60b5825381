// GET /debug/why/{namespace}/{pod} (ours): why the pod is not running, in one sentence with evidence and what to do, as
// text or as JSON. GET /debug/why: every pod that is neither ready nor done. `?output=` wins over the Accept header.
import { json, reply } from '../replies.ts';
import { wantsJson, type Endpoint, type Exchange } from '../router.ts';

type Why = {
  readonly state: string;
  readonly cause: string;
  readonly sentence: string;
  readonly evidence: readonly string[];
  readonly todo: string;
};

/** PodExplainer fits. */
export interface Explainer {
  byName(namespace: string, name: string): Why | undefined;
  all(): readonly { readonly namespace: string; readonly name: string; readonly why: Why }[];
}

export function whyRoutes(explainer: Explainer): Endpoint {
  const ofPod = (exchange: Exchange): void => {
    const { namespace = '', pod = '' } = exchange.params;
    const found = explainer.byName(namespace, pod);
    if (found === undefined)
      return reply(exchange.response, 404, `no pod "${pod}" in namespace "${namespace}" is on this node\n`, {
        nosniff: true,
      });
    if (wantsJson(exchange)) json(exchange.response, { namespace, name: pod, why: found }, { newline: true });
    else reply(exchange.response, 200, whyText(found));
  };
  const ofAll = (exchange: Exchange): void => {
    const found = explainer.all().filter(({ why: { state } }) => state !== 'ready' && state !== 'ended');
    if (wantsJson(exchange)) return json(exchange.response, { pods: found }, { newline: true });
    reply(exchange.response, 200, found.map((p) => `${p.namespace}/${p.name}: ${p.why.sentence}\n`).join(''));
  };
  return {
    roots: [{ prefix: '/debug/why' }],
    routes: [
      { path: '/debug/why', methods: ['GET'], handle: ofAll },
      { path: '/debug/why/{namespace}/{pod}', methods: ['GET'], handle: ofPod },
    ],
  };
}

const whyText = ({ sentence, evidence, todo }: Why): string =>
  [sentence, ...evidence.map((line) => `  - ${line}`), ...(todo === '' ? [] : [`What to do: ${todo}`]), ''].join('\n');
