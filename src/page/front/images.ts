// Images: pulls under way, what is there, who uses it, and what collection would take next.
import type { ImagesView, ImageView } from '../model.ts';
import type { View } from './app.ts';
import { arrange, h, Parts } from './dom.ts';
import { bytes, count, percent } from './format.ts';
import { bar, card, empty, pill, table } from './parts.ts';
import { podLink } from './pods.ts';
import { pullList } from './pulls.ts';

export class ImagesPage implements View {
  readonly title = 'Images';
  readonly element = h('div', { class: 'grid' });
  readonly query = { view: 'images' };
  readonly listeners = { images: (data: unknown) => this.#show(data as ImagesView) };
  readonly #parts = new Parts();

  #show(view: ImagesView): void {
    arrange(this.element, [
      this.#parts.show('pulls', view.pulls, () => pullsCard(view)),
      this.#parts.show('disk', [view.disk, view.images.length], () => diskCard(view)),
      this.#parts.show('images', view.images, () => listCard(view.images)),
    ]);
  }
}

const pullsCard = ({ pulls, atMs }: ImagesView): HTMLElement => {
  const section = card('Pulls', pullList(pulls, atMs));
  section.classList.add('half');
  return section;
};

function diskCard({ disk, images }: ImagesView): HTMLElement {
  const total = images.reduce((sum, i) => sum + i.sizeBytes, 0);
  const free = images.filter((i) => i.collectOrder !== undefined).reduce((sum, i) => sum + i.sizeBytes, 0);
  const share = disk === undefined ? 0 : percent(disk.usedBytes, disk.capacityBytes);
  const section = card(
    'Image disk',
    h('p', { class: 'big' }, bytes(total), h('small', {}, ` in ${count(images.length)} images`)),
    disk === undefined
      ? empty('The disk has not been measured yet.')
      : bar(share, {
          tone: share >= disk.highPercent ? 'bad' : share > disk.lowPercent ? 'warn' : 'ok',
          mark: disk.highPercent,
          label: `${Math.round(share)} percent of the disk is used; collection begins at ${disk.highPercent}`,
        }),
    disk !== undefined &&
      h(
        'p',
        { class: 'dim' },
        `${bytes(disk.usedBytes)} of ${bytes(disk.capacityBytes)} used. Unused images go above ${disk.highPercent} %, down to ${disk.lowPercent} %.`,
      ),
    h('p', { class: 'dim' }, `${bytes(free)} could be collected.`),
  );
  section.classList.add('half');
  return section;
}

function listCard(images: readonly ImageView[]): HTMLElement {
  const section = card(
    'On this node',
    images.length === 0
      ? empty('No image has been seen yet.')
      : table(
          'Images',
          ['Image', 'Size', 'Used by', 'Collection'],
          images.map((i) => [
            [
              h('span', { class: 'mono' }, i.names.find((n) => !n.includes('@')) ?? i.names[0] ?? i.id.slice(0, 19)),
              h('span', { class: 'dim block mono' }, i.id.replace(/^sha256:/, '').slice(0, 12)),
            ],
            h('span', { class: 'num' }, bytes(i.sizeBytes)),
            i.usedBy.length === 0 ? h('span', { class: 'dim' }, 'nobody') : users(i.usedBy),
            i.pinned
              ? pill('idle', 'pinned')
              : i.collectOrder === undefined
                ? h('span', { class: 'dim' }, 'kept')
                : pill('warn', `${ordinal(i.collectOrder)} to go`),
          ]),
          'cards images',
        ),
  );
  section.classList.add('wide');
  return section;
}

const SHOWN_USERS = 6;

const users = (pods: readonly string[]): HTMLElement =>
  h(
    'span',
    { class: 'links' },
    ...pods.slice(0, SHOWN_USERS).map((pod) => {
      const [namespace = '', name = ''] = pod.split('/');
      return h('a', { href: podLink(namespace, name) }, pod);
    }),
    pods.length > SHOWN_USERS && h('span', { class: 'dim' }, `and ${count(pods.length - SHOWN_USERS)} more`),
  );

function ordinal(n: number): string {
  const tens = n % 100;
  if (tens >= 11 && tens <= 13) return `${n}th`;
  return `${n}${['th', 'st', 'nd', 'rd'][n % 10] ?? 'th'}`;
}
