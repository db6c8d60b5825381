// Prepares one sub path in a process of its own, for volumes whose filesystem may not answer: the parent waits with a
// deadline and carries on without us. argv: the request as JSON; answer: the path on stdout, or the reason on stderr.
import { HostMounter } from '../host/mounts/mounter.ts';
import { systemClock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import { VolumeLayout } from './layout.ts';
import { SubPaths, type SubPathRequest } from './subpath.ts';

const input = JSON.parse(process.argv.at(-1) ?? '') as { rootDir: string; request: SubPathRequest };
const subPaths = new SubPaths({
  layout: new VolumeLayout(input.rootDir),
  mounter: new HostMounter({ clock: systemClock }, { rootDir: input.rootDir }),
  clock: systemClock,
});
subPaths.prepareHere(input.request, new AbortController().signal).then(
  (path) => void process.stdout.write(path),
  (err: unknown) => {
    process.stderr.write(messageOf(err));
    process.exitCode = 1;
  },
);
