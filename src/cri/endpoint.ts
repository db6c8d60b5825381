// Where the runtime listens: `unix:///path`, or a bare absolute path.
import { KubeletError } from '../lib/errors.ts';
import type { Target } from '../lib/grpc/channel.ts';

export function parseEndpoint(endpoint: string): Target {
  if (endpoint === '') throw new KubeletError('invalid', 'the container runtime endpoint is empty');
  const path = endpoint.startsWith('unix:') ? endpoint.replace(/^unix:(\/\/)?/, '') : endpoint;
  if (!path.startsWith('/'))
    throw new KubeletError('invalid', `container runtime endpoint ${JSON.stringify(endpoint)} is not a unix socket`);
  return { socketPath: path };
}
