// The metrics pages. /metrics is the process' own registry; the others are given by their owners and left out here
// while nobody gives them.
import { messageOf } from '../../lib/errors.ts';
import { reply } from '../replies.ts';
import { exactly, joined, type Endpoint, type Handler } from '../router.ts';

/** Writes one page in Prometheus' text format. */
export interface MetricsPage {
  (signal: AbortSignal): Promise<string> | string;
}

export type MetricsPages = {
  readonly '/metrics': MetricsPage;
  readonly '/metrics/probes': MetricsPage;
  readonly '/metrics/slis': MetricsPage;
  /** From the statistics: containers and the machine as cAdvisor names them. */
  readonly '/metrics/cadvisor': MetricsPage | undefined;
  /** From the statistics: what metrics-server reads. */
  readonly '/metrics/resource': MetricsPage | undefined;
};

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8; escaping=underscores';

export const metricsRoutes = (pages: MetricsPages, processStartSeconds: number): Endpoint =>
  joined(
    Object.entries(pages).map(([path, page]: [string, MetricsPage | undefined]) =>
      exactly(path, page === undefined ? notGathered : show(page, processStartSeconds)),
    ),
  );

const show =
  (page: MetricsPage, startSeconds: number): Handler =>
  async ({ response, signal }) => {
    let text: string;
    try {
      text = await page(signal);
    } catch (err) {
      if (signal.aborted) throw err;
      return reply(response, 500, `An error has occurred while serving metrics:\n\n${messageOf(err)}\n`, {
        nosniff: true,
      });
    }
    reply(response, 200, text, {
      contentType: CONTENT_TYPE,
      headers: { 'Process-Start-Time-Unix': String(startSeconds) },
    });
  };

const notGathered: Handler = ({ response }) => reply(response, 500, 'these metrics are not gathered on this node\n');
