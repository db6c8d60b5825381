// The hash by which a running container is known to be the one the spec asks for. Only the name and the image count.
import { fnv1a32, goJson } from '../core/go-json.ts';

type Hashed = { readonly name: string; readonly image?: string };

/** Asked for at every sync of a pod, for the same containers. */
const known = new WeakMap<Hashed, { readonly of: string; readonly image: string | undefined; readonly hash: string }>();

export function containerHash(container: Hashed): string {
  const last = known.get(container);
  if (last !== undefined && last.of === container.name && last.image === container.image) return last.hash;
  const hash = hashOf(container);
  known.set(container, { of: container.name, image: container.image, hash });
  return hash;
}

/** Lowercase hex without padding, over the printed byte list of `{"image":…,"name":…}`. */
function hashOf({ name, image = '' }: Hashed): string {
  const json = Buffer.from(goJson({ image, name }));
  return fnv1a32(`([]uint8)[${json.join(' ')}]`).toString(16);
}
