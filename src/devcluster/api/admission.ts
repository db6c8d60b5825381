// What may be written, besides what a resource's own strategy says: the admission plugins of the real server that matter to a node.
import { forbidden } from './api-error.ts';
import { restrictNodes } from './node-restriction.ts';
import { textAt } from './objects.ts';
import type { Write } from './registry.ts';
import type { ObjectStore } from './store.ts';

export function admission(store: ObjectStore): (write: Write) => void {
  const restrict = restrictNodes(store);
  return (write) => {
    restrict(write);
    checkResize(store, write);
  };
}

/** Resources of a bound pod change only while its node is known. */
function checkResize(store: ObjectStore, { type, subresource, object, old }: Write): void {
  if (type.storage !== 'pods' || subresource !== 'resize') return;
  const node = textAt(object, 'spec', 'nodeName');
  if (node === '' || object.metadata.generation === old?.metadata.generation) return;
  if (store.get('nodes', node) === undefined) throw forbidden(type, object.metadata.name, `node "${node}" not found`);
}
