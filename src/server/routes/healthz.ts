// /healthz and one path per check below it, on the main and the read-only port.
import { answerHealth, type HealthCheck, type HealthObserver } from '../health-checks.ts';
import { reply } from '../replies.ts';
import { exactly, joined, type Endpoint } from '../router.ts';

export const healthzRoutes = (checks: readonly HealthCheck[], observe?: HealthObserver): Endpoint =>
  joined([
    exactly('/healthz', ({ query, response }) => {
      const { ok, body } = answerHealth(checks, query, observe);
      reply(response, ok ? 200 : 500, body, { nosniff: true });
    }),
    ...checks.map(({ name, failing }) =>
      exactly(`/healthz/${name}`, ({ response }) => {
        const reason = failing();
        if (reason === undefined) reply(response, 200, 'ok');
        else reply(response, 500, `internal server error: ${reason}\n`, { nosniff: true });
      }),
    ),
  ]);
