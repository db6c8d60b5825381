// What may be written, besides what a resource's own strategy says: the admission plugins of the real server that matter to a node.
import { forbidden } from './api-error.ts';
import { restrictNodes } from './node-restriction.ts';
import { textAt } from './objects.ts';
import type { Write } from './registry.ts';
import type { ObjectStore } from './store.ts';

export function admission(store: ObjectStore): (write: Write) => void {
  const restrict = restrictNodes(store);
  return (write) => {
    keepSystemNamespaces(write);
    restrict(write);
    checkResize(store, write);
  };
}

const KEPT_NAMESPACES = new Set(['default', 'kube-system', 'kube-public']);

function keepSystemNamespaces({ operation, type, object }: Write): void {
  const { name } = object.metadata;
  if (operation === 'delete' && type.storage === 'namespaces' && KEPT_NAMESPACES.has(name))
    throw forbidden(type, name, 'this namespace may not be deleted');
}

/** Resources of a bound pod change only while its node is known. */
function checkResize(store: ObjectStore, { type, subresource, object, old }: Write): void {
  if (type.storage !== 'pods' || subresource !== 'resize') return;
  const node = textAt(object, 'spec', 'nodeName');
  if (node === '' || object.metadata.generation === old?.metadata.generation) return;
  if (store.get('nodes', node) === undefined) throw forbidden(type, object.metadata.name, `node "${node}" not found`);
}
