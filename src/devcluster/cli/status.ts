// `kubelet-dev status`: what runs, what does not, what to do.
import { apiIsReady } from './client.ts';
import { exampleState, nodeIsReady } from './example.ts';
import { childProcesses } from './own-processes.ts';
import type { Paths } from './paths.ts';
import { readSettings } from './settings.ts';
import { supervisorState } from './state.ts';
import { ownCommand, summary } from './summary.ts';

/** The text, and whether all is well. */
export async function status(paths: Paths): Promise<{ text: string; healthy: boolean }> {
  const settings = await readSettings(paths);
  if (settings === undefined)
    return { text: `Nothing here yet (${paths.directory}). Start with: ${ownCommand(paths, 'up')}\n`, healthy: false };
  const state = await supervisorState(paths);
  const api = await apiIsReady(paths);
  const node = api
    ? await nodeIsReady(paths, settings.nodeName)
    : { ready: false, why: 'the API server does not answer' };
  const pod = api ? await exampleState(paths) : undefined;
  const rows: [string, boolean, string][] = [
    ['supervisor', state !== undefined, state === undefined ? 'not running' : `pid ${state.pid}, ${state.phase}`],
  ];
  for (const name of ['containerd', 'api-server', 'csi-driver', 'kubelet']) {
    const child = state?.children[name];
    const restarts = child !== undefined && child.restarts > 0 ? `, started again ${child.restarts} times` : '';
    rows.push([
      name,
      child?.pid !== undefined,
      child?.pid === undefined ? 'not running' : `pid ${child.pid}${restarts}`,
    ]);
  }
  rows.push(
    ['api', api, `https://127.0.0.1:${settings.apiPort}`],
    ['node', node.ready, `${settings.nodeName}${node.why === '' ? '' : `: ${node.why}`}`],
  );
  const lines = rows.map(([name, ok, detail]) => `  ${ok ? 'up  ' : 'DOWN'}  ${name.padEnd(11)} ${detail}`);
  const healthy = rows.every(([, ok]) => ok);
  const strays = state === undefined ? await childProcesses(paths) : [];
  const advice = healthy
    ? summary(paths, settings, pod?.ip === '' ? undefined : pod?.ip)
    : `\n${strays.length > 0 ? `Left from an earlier run: processes ${strays.join(', ')}.\n` : ''}Bring it up with: ${ownCommand(paths, 'up')}   Logs: ${paths.logs}\n`;
  return { text: `${lines.join('\n')}\n${advice}`, healthy };
}
