// The hash by which a running container is known to be the one the spec asks for. Only the name and the image count.
import { goJson } from './go-json.ts';

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

export function fnv1a32(text: string): number {
  let hash = FNV_OFFSET;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, FNV_PRIME);
  return hash >>> 0;
}

/** Lowercase hex without padding, over the printed byte list of `{"image":…,"name":…}`. */
export function containerHash(container: { readonly name: string; readonly image?: string }): string {
  const json = Buffer.from(goJson({ image: container.image ?? '', name: container.name }));
  return fnv1a32(`([]uint8)[${json.join(' ')}]`).toString(16);
}
