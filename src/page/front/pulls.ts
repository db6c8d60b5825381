// Image pulls under way: how far, how fast, how long still, and each layer.
import type { PullView } from '../model.ts';
import { h } from './dom.ts';
import { bytes, count, duration, percent } from './format.ts';
import { bar, empty } from './parts.ts';

/** More are folded away. */
const FEW_LAYERS = 8;

export function pullList(pulls: readonly PullView[], nowMs: number): HTMLElement {
  if (pulls.length === 0) return empty('Nothing is being pulled.');
  return h('ul', { class: 'pulls' }, ...pulls.map((pull) => onePull(pull, nowMs)));
}

function onePull(pull: PullView, nowMs: number): HTMLElement {
  const { doneBytes, totalBytes, bytesPerSecond, leftMs, layers = [] } = pull;
  const share = doneBytes === undefined || totalBytes === undefined ? undefined : percent(doneBytes, totalBytes);
  const words = [
    pull.state === 'queued' ? `waits behind ${count(pull.ahead ?? 0)} others` : undefined,
    doneBytes === undefined
      ? undefined
      : `${bytes(doneBytes)}${totalBytes === undefined ? '' : ` of ${bytes(totalBytes)}`}`,
    bytesPerSecond === undefined ? undefined : `${bytes(bytesPerSecond)}/s`,
    leftMs === undefined ? `for ${duration(nowMs - pull.startedAtMs)}` : `${duration(leftMs)} left`,
  ].filter((w) => w !== undefined);
  return h(
    'li',
    {},
    h('p', { class: 'mono' }, pull.image),
    share !== undefined && bar(share, { tone: 'busy', label: `${Math.round(share)} percent of ${pull.image} is here` }),
    h(
      'p',
      { class: 'dim words' },
      h('span', { class: 'num' }, `${share === undefined ? '' : `${Math.floor(share)} % · `}${words.join(' · ')}`),
      h('span', {}, `for ${pull.pods.join(', ')}`),
    ),
    layers.length > 0 &&
      h(
        'details',
        { open: layers.length <= FEW_LAYERS },
        h('summary', {}, `${layers.length} layers`),
        h(
          'ul',
          { class: 'layers' },
          ...layers.map((layer) => {
            const done = layer.totalBytes === undefined ? 0 : percent(layer.doneBytes, layer.totalBytes);
            const size = `${bytes(layer.doneBytes)}${layer.totalBytes === undefined ? '' : ` of ${bytes(layer.totalBytes)}`}`;
            return h(
              'li',
              {},
              h('code', {}, layer.name.replace(/^sha256:/, '').slice(0, 12)),
              bar(done, { tone: done >= 100 ? 'ok' : 'busy', label: size }),
              h('span', { class: 'num' }, size),
            );
          }),
        ),
      ),
  );
}
