// PUT /debug/flags/v: sets how much is logged, while the process runs.
import { bodyOf } from '../request-body.ts';
import { reply } from '../replies.ts';
import { exactly, type Endpoint } from '../router.ts';

const MAX_BODY = 64;
const MAX_LEVEL = 2 ** 31 - 1;
const PLAIN = { contentType: 'text/plain', nosniff: true } as const;

export type DebugFlagDeps = {
  /** enableDebugFlagsHandler */
  readonly enabled: boolean;
  readonly setVerbosity: (level: number) => void;
};

export const debugFlagRoutes = ({ enabled, setVerbosity }: DebugFlagDeps): Endpoint =>
  exactly('/debug/flags/v', async ({ request, response }) => {
    if (!enabled) return reply(response, 405, 'flags endpoint is disabled.\n', { nosniff: true });
    if (request.method !== 'PUT') return reply(response, 406, 'unsupported http method\n', PLAIN);
    const text = await bodyOf(request, MAX_BODY);
    const level = Number(text);
    const why = !/^\d+$/.test(text) ? 'invalid syntax' : level > MAX_LEVEL ? 'value out of range' : undefined;
    if (why !== undefined)
      return reply(response, 400, `strconv.ParseUint: parsing ${JSON.stringify(text)}: ${why}\n`, PLAIN);
    setVerbosity(level);
    reply(response, 200, `successfully set klog.logging.verbosity to ${level}\n`, PLAIN);
  });
