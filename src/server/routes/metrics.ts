// The metrics pages. /metrics is the process' own registry; the others are given by their owners and left out here
// while nobody gives them. The scraper chooses between text and protobuf, packed or not.
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { messageOf } from '../../lib/errors.ts';
import { delimitedFamilies } from '../metric-families.ts';
import { metricsFormat, wantsGzip } from '../metrics-format.ts';
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

export const metricsRoutes = (pages: MetricsPages, processStartSeconds: number): Endpoint =>
  joined(
    Object.entries(pages).map(([path, page]: [string, MetricsPage | undefined]) =>
      exactly(path, page === undefined ? notGathered : show(page, processStartSeconds)),
    ),
  );

const show =
  (page: MetricsPage, startSeconds: number): Handler =>
  async ({ request, response, signal }) => {
    let text: string;
    try {
      text = await page(signal);
    } catch (err) {
      if (signal.aborted) throw err;
      return reply(response, 500, `An error has occurred while serving metrics:\n\n${messageOf(err)}\n`, {
        nosniff: true,
      });
    }
    response.setHeader('Process-Start-Time-Unix', startSeconds);
    const { kind, contentType } = metricsFormat(request.headers.accept);
    let body = kind === 'text' ? Buffer.from(text) : await delimitedFamilies(text);
    if (wantsGzip(String(request.headers['accept-encoding'] ?? ''))) {
      body = await compress(body);
      response.setHeader('Content-Encoding', 'gzip');
    }
    response.setHeader('Content-Type', contentType);
    response.setHeader('Content-Length', body.length);
    response.end(body);
  };

/** On a thread of its own: pages of a busy node are megabytes. */
const compress = promisify(gzip);

const notGathered: Handler = ({ response }) => reply(response, 500, 'these metrics are not gathered on this node\n');
