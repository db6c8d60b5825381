// The attacker of the race tests: exchanges two names as fast as the kernel allows until it is killed.
// argv: pairs of paths.
import { dlopen } from 'node:ffi';

const AT_FDCWD = -100;
const RENAME_EXCHANGE = 2;
const { functions } = dlopen(null, {
  renameat2: { arguments: ['i32', 'buffer', 'i32', 'buffer', 'u32'], return: 'i32' },
});
const paths = process.argv.slice(2).map((path) => Buffer.from(`${path}\0`));
process.stdout.write('ready\n');
for (;;) {
  for (let i = 0; i + 1 < paths.length; i += 2) {
    functions.renameat2(AT_FDCWD, paths[i] as Buffer, AT_FDCWD, paths[i + 1] as Buffer, RENAME_EXCHANGE);
  }
}
