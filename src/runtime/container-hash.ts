// The hash by which a running container is known to be the one the spec asks for. Only the name and the image count.
import { fnv1a32, goJson } from '../core/go-json.ts';

/** Lowercase hex without padding, over the printed byte list of `{"image":…,"name":…}`. */
export function containerHash(container: { readonly name: string; readonly image?: string }): string {
  const json = Buffer.from(goJson({ image: container.image ?? '', name: container.name }));
  return fnv1a32(`([]uint8)[${json.join(' ')}]`).toString(16);
}
