// The HTTP client of lifecycle hooks: no keep-alive, certificates not verified, redirects followed on the same host only. The
// answer's body is read up to 10 KiB and thrown away; a body that breaks off is no failure of the hook.
import { childScope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { HttpError } from '../lib/http/open.ts';
import { httpFollow, targetOf } from '../lib/http/redirects.ts';
import { NameLookup } from '../lib/name-lookup.ts';
import type { HookHttp } from './needs.ts';

const MAX_BODY = 10 * 1024;

export const hookHttp = (clock: Clock, names = new NameLookup()): HookHttp => ({
  async get(url, headers, signal) {
    const target = targetOf(url);
    if (target === undefined) throw new KubeletError('invalid', `unsupported protocol scheme "${url.protocol}"`);
    const scope = childScope(signal);
    try {
      const lookup = names.until(scope.signal);
      const asked = { target, headers, verifyCertificate: false, lenient: true, lookup, maxBodyBytes: MAX_BODY };
      const reply = await httpFollow(
        clock,
        asked,
        (from, to) => (to.host === target.host ? { ...from, target: to } : undefined),
        signal,
      );
      return reply.body.toString('utf8');
    } catch (err) {
      if (err instanceof HttpError && err.stage === 'body') return '';
      throw err;
    } finally {
      scope.abort();
      scope.release();
    }
  },
});
