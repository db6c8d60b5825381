// Gives a volume to a group in a process of its own, for volumes whose filesystem may not answer. argv: the request as JSON;
// answer: how many files were seen so far, a line now and then, or the reason of a failure on stderr.
import { messageOf } from '../lib/errors.ts';
import { giveToGroup, type Ownership } from './ownership.ts';

const EVERY = 10;
const { path, how } = JSON.parse(process.argv.at(-1) ?? '') as { path: string; how: Ownership };
let files = 0;
const tell = (): void => void process.stdout.write(`${files}\n`);
giveToGroup(path, how, new AbortController().signal, () => {
  if (++files % EVERY === 0) tell();
}).then(tell, (err: unknown) => {
  process.stderr.write(messageOf(err));
  process.exitCode = 1;
});
