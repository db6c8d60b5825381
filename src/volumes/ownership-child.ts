// Gives a volume to a group in a process of its own, for volumes whose filesystem may not answer. argv: the request as JSON;
// answer: how many files were seen so far, a line now and then; on stderr the reason of a failure, or of the first file that
// stays as it is.
import { messageOf } from '../lib/errors.ts';
import { giveToGroup, type Ownership } from './ownership.ts';

const EVERY = 10;
const { path, how } = JSON.parse(process.argv.at(-1) ?? '') as { path: string; how: Ownership };
let files = 0;
const tell = (): void => void process.stdout.write(`${files}\n`);
let isRefused = false;
const onFile = (): void => {
  if (++files % EVERY === 0) tell();
};
const onRefused = (err: unknown): void => {
  if (!isRefused) process.stderr.write(messageOf(err));
  isRefused = true;
};
giveToGroup(path, how, new AbortController().signal, onFile, onRefused).then(tell, (err: unknown) => {
  process.stderr.write(messageOf(err));
  process.exitCode = 1;
});
