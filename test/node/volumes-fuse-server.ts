// A filesystem with a server that can be stopped: one directory `sub` in a root, served over /dev/fuse until the process
// is stopped (accesses wait) or killed (the mount breaks). argv[2]: where to mount; argv[3]: `silent` takes all requests and
// answers none but the first, which makes those who wait for it immune to SIGKILL.
import { openSync, readSync, writeSync } from 'node:fs';
import { mountSync } from '../../src/host/libc.ts';

const FORGET = 2;
const INIT = 26;
const INTERRUPT = 36;
const BATCH_FORGET = 42;
const ENOENT = 2;
const ENOSYS = 38;
const HEADER = 40;

const [target = '', mode] = process.argv.slice(2);
const fd = openSync('/dev/fuse', 'r+');
mountSync('test', target, 'fuse', 0, `fd=${fd},rootmode=40000,user_id=0,group_id=0`);
process.stdout.write('mounted\n');

function attributes(inode: bigint): Buffer {
  const attr = Buffer.alloc(88);
  attr.writeBigUInt64LE(inode, 0);
  attr.writeUInt32LE(0o40755, 60);
  attr.writeUInt32LE(2, 64);
  attr.writeUInt32LE(4096, 80);
  return attr;
}

/** The body of an answer; a number is an errno. Nothing is cached by the kernel, so a stopped server is noticed. */
function answer(opcode: number, node: bigint, body: Buffer): Buffer | number {
  switch (opcode) {
    case 1: {
      if (body.toString('latin1', 0, body.indexOf(0)) !== 'sub' || node !== 1n) return ENOENT;
      const entry = Buffer.alloc(40);
      entry.writeBigUInt64LE(2n, 0);
      return Buffer.concat([entry, attributes(2n)]);
    }
    case 3:
      return Buffer.concat([Buffer.alloc(16), attributes(node)]);
    case 17:
      return Buffer.alloc(80);
    case INIT: {
      const init = Buffer.alloc(64);
      init.writeUInt32LE(7, 0);
      init.writeUInt32LE(31, 4);
      init.writeUInt32LE(65_536, 20);
      return init;
    }
    case 27:
      return Buffer.alloc(16);
    case 28:
    case 29:
    case 34:
      return Buffer.alloc(0);
    default:
      return ENOSYS;
  }
}

const request = Buffer.alloc(1 << 20);
for (;;) {
  const length = readSync(fd, request);
  const opcode = request.readUInt32LE(4);
  if (opcode === FORGET || opcode === BATCH_FORGET || opcode === INTERRUPT) continue;
  if (mode === 'silent' && opcode !== INIT) continue;
  const reply = answer(opcode, request.readBigUInt64LE(16), request.subarray(HEADER, length));
  const body = typeof reply === 'number' ? Buffer.alloc(0) : reply;
  const header = Buffer.alloc(16);
  header.writeUInt32LE(16 + body.length, 0);
  header.writeInt32LE(typeof reply === 'number' ? -reply : 0, 4);
  request.copy(header, 8, 8, 16);
  writeSync(fd, Buffer.concat([header, body]));
}
