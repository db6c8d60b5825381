// The process that makes the calls of `project-quota.ts`, one after the other. argv: the two files as JSON; then one request
// a line on stdin and one answer a line on stdout. It ends with its stdin.
import { createInterface } from 'node:readline';
import { KubeletError, messageOf } from '../../lib/errors.ts';
import { assignProject, clearProject, projectUsage, type ProjectFilePaths } from './project-quota.ts';
import type { QuotaAnswer, QuotaRequest } from './project-quotas.ts';

const paths = JSON.parse(process.argv.at(-1) ?? '') as ProjectFilePaths;

function answer({ number, request }: { number: number; request: QuotaRequest }): QuotaAnswer {
  try {
    if (request.do === 'assign') return { number, project: assignProject(request.path, paths) };
    if (request.do === 'usage') return { number, usage: projectUsage(request.path, request.project) };
    clearProject(request.path, paths);
    return { number };
  } catch (err) {
    const unsupported = err instanceof KubeletError && err.kind === 'unimplemented';
    return { number, error: messageOf(err), unsupported };
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  process.stdout.write(`${JSON.stringify(answer(JSON.parse(line) as Parameters<typeof answer>[0]))}\n`);
});
