// Elements from code: text is always text, so nothing that a pod says can become markup.

export type Child = Node | string | number | undefined | false | readonly Child[];
type Attributes = Readonly<Record<string, string | number | boolean | undefined | ((event: Event) => void)>>;

const SVG = 'http://www.w3.org/2000/svg';

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  assign(element, attributes);
  append(element, children);
  return element;
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  assign(element, attributes);
  append(element, children);
  return element;
}

function assign(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
}

function append(element: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child as readonly Child[]);
    else element.append(child instanceof Node ? child : String(child as string | number));
  }
}

export const fill = (element: Element, ...children: readonly Child[]): void => {
  element.replaceChildren();
  append(element, children);
};

/** Makes a part anew only when what it shows has changed: focus, selection and scrolling stay. */
export class Parts {
  readonly #known = new Map<string, { readonly text: string; readonly element: HTMLElement }>();

  show(key: string, data: unknown, make: () => HTMLElement): HTMLElement {
    const text = JSON.stringify(data) ?? '';
    const known = this.#known.get(key);
    if (known?.text === text) return known.element;
    const element = make();
    known?.element.replaceWith(element);
    this.#known.set(key, { text, element });
    return element;
  }
}

/** Puts these children in this order, touching only what is elsewhere. */
export function arrange(parent: Element, children: readonly Element[]): void {
  for (const [i, child] of children.entries())
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null);
  while (parent.children.length > children.length) parent.lastElementChild?.remove();
}
