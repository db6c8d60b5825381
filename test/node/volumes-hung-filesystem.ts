// A filesystem whose server never answers: mounts FUSE at argv[2] and then does nothing. Killing it breaks the mount.
import { openSync } from 'node:fs';
import { mountSync } from '../../src/host/libc.ts';

const target = process.argv[2] ?? '';
const fd = openSync('/dev/fuse', 'r+');
mountSync('hung', target, 'fuse', 0, `fd=${fd},rootmode=40000,user_id=0,group_id=0`);
process.stdout.write('mounted\n');
setInterval(() => undefined, 60_000);
