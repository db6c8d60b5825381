// GET /configz: the configuration in force, in its versioned form.
import { reply } from '../replies.ts';
import { exactly, type Endpoint } from '../router.ts';

/** `config` gives the v1beta1 form, with credentials hidden. */
export const configzRoutes = (config: () => object): Endpoint =>
  exactly('/configz', ({ response }) =>
    reply(response, 200, JSON.stringify({ kubeletconfig: config() }), {
      contentType: 'application/json',
      nosniff: true,
    }),
  );
