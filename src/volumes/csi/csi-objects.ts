// What CSI volumes need from the API server.
import type { Secret } from '../../core/node.ts';
import type { Pod } from '../../core/pod.ts';
import type { CsiDriver, SecretReference, VolumeAttachment } from '../../core/storage.ts';
import { isFault, KubeletError, messageOf } from '../../lib/errors.ts';

/** Missing objects are `notFound` faults. */
export interface CsiObjects {
  /** Resolves once all CSIDriver objects were read. */
  driversRead(signal: AbortSignal): Promise<void>;
  driver(name: string): CsiDriver | undefined;
  attachment(name: string, signal: AbortSignal): Promise<VolumeAttachment>;
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret>;
  /** A token bound to the pod; an empty audience is the API server's own. */
  token(
    pod: Pod,
    request: { readonly audience: string; readonly expirationSeconds?: number },
    signal: AbortSignal,
  ): Promise<{ readonly token: string; readonly expirationTimestamp: string }>;
}

/** All values of a secret a driver is to be given; `field` is the reference's name in error texts. */
export async function secretValues(
  objects: Pick<CsiObjects, 'secret'>,
  field: string,
  reference: SecretReference | undefined,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  if (reference === undefined) return {};
  const { namespace = '', name = '' } = reference;
  try {
    const { data = {} } = await objects.secret(namespace, name, signal);
    return Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
    );
  } catch (err) {
    signal.throwIfAborted();
    // The API server's text, whoever noticed: watched secrets are missed in other words.
    const why = isFault(err, 'notFound') ? `secrets "${name}" not found` : messageOf(err);
    throw new KubeletError(
      'unavailable',
      `fetching ${field} ${namespace}/${name} failed: kubernetes.io/csi: failed to find the secret ${name} in the namespace ${namespace} with error: ${why}`,
      { cause: err },
    );
  }
}

/** The tokens a driver asked for, as the JSON text it is given; undefined when it asked for none. */
export async function tokensText(
  objects: Pick<CsiObjects, 'token'>,
  pod: Pod,
  driver: CsiDriver | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  const requests = driver?.spec.tokenRequests ?? [];
  if (requests.length === 0) return undefined;
  const tokens = await Promise.all(
    requests.map(async (request) => {
      const { token, expirationTimestamp } = await objects.token(pod, request, signal);
      return [request.audience, { token, expirationTimestamp }] as const;
    }),
  );
  return JSON.stringify(Object.fromEntries(tokens.sort(([a], [b]) => (a < b ? -1 : 1))));
}

/** What the attacher left for the driver; why the volume is not usable otherwise. */
export async function attachedContext(
  objects: Pick<CsiObjects, 'attachment'>,
  handle: string,
  name: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  let attachment: VolumeAttachment;
  try {
    attachment = await objects.attachment(name, signal);
  } catch (err) {
    signal.throwIfAborted();
    throw new KubeletError(
      'unavailable',
      `volume ${handle} has GET error for volume attachment ${name}: ${messageOf(err)}`,
      { cause: err },
    );
  }
  const { metadata, status } = attachment;
  if (metadata.deletionTimestamp !== undefined)
    throw new KubeletError('unavailable', 'volume attachment is being deleted');
  // An error may stand beside it: of a look at a volume that is attached all the while.
  if (status?.attached === true) return status.attachmentMetadata ?? {};
  const failure = status?.attachError?.message ?? '';
  const waits = `volume ${handle} is not attached for volume attachment ${name}`;
  throw new KubeletError('unavailable', failure === '' ? waits : failure);
}
