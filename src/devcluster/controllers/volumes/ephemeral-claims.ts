// The claims of generic ephemeral volumes: `<pod>-<volume>`, owned by the pod and gone with it.
import { keyOf, recordAt, recordsAt, textAt } from '../../api/objects.ts';
import { resourceNamed } from '../../api/resources.ts';
import type { Change } from '../../api/store.ts';
import { systemContext } from '../../seed.ts';
import type { Controller, ControllerDeps } from '../controller.ts';
import { all, CLAIMS, find, isDeleting, isFinished, keyOfObject } from './objects.ts';

export class EphemeralClaims implements Controller {
  readonly name = 'ephemeral-claims';
  readonly #deps: ControllerDeps;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
  }

  initialKeys(): readonly string[] {
    return all(this.#deps.registry, 'pods').map(keyOfObject);
  }

  keysOf(change: Change): readonly string[] {
    if (change.resource === 'pods') return change.type === 'ADDED' ? [change.now.key] : [];
    if (change.resource !== CLAIMS || change.type !== 'DELETED') return [];
    const { ownerReferences: owners = [], namespace } = change.now.object.metadata;
    return owners.filter((o) => o.kind === 'Pod').map((o) => keyOf(namespace, o.name));
  }

  reconcile(key: string): void {
    const { registry } = this.#deps;
    const pod = find(registry, 'pods', key);
    if (pod === undefined || isDeleting(pod) || isFinished(pod)) return;
    const { name, namespace = '', uid = '' } = pod.metadata;
    for (const volume of recordsAt(pod, 'spec', 'volumes')) {
      if (volume['ephemeral'] === undefined) continue;
      const claim = `${name}-${textAt(volume, 'name')}`;
      // One of another owner is left alone; the pod waits and the kubelet says why.
      if (find(registry, CLAIMS, keyOf(namespace, claim)) !== undefined) continue;
      const template = recordAt(volume, 'ephemeral', 'volumeClaimTemplate');
      const { labels, annotations } = recordAt(template, 'metadata');
      const owner = { apiVersion: 'v1', kind: 'Pod', name, uid, controller: true, blockOwnerDeletion: true };
      const metadata = {
        name: claim,
        ...(labels === undefined ? {} : { labels }),
        ...(annotations === undefined ? {} : { annotations }),
        ownerReferences: [owner],
      };
      const body = { metadata, spec: recordAt(template, 'spec') };
      registry.create(resourceNamed(CLAIMS), namespace, body, systemContext());
    }
  }
}
