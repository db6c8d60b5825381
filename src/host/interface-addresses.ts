// Every IP address of every network interface, as the kernel's route netlink socket tells it. `os.networkInterfaces()` leaves
// out interfaces without a carrier; a node's address may well be on a bridge that has no ports yet.
import { KubeletError } from '../lib/errors.ts';
import { netlinkDump } from './libc.ts';

export type InterfaceAddress = { readonly device: string; readonly address: string };

const RTM_GETLINK = 18;
const RTM_GETADDR = 22;
const RTM_NEWLINK = 16;
const RTM_NEWADDR = 20;
const NLMSG_ERROR = 2;
const NLM_F_DUMP = 0x301;
const HEADER_BYTES = 16;
const LINK_BYTES = 16;
const ADDRESS_BYTES = 8;
const IFLA_IFNAME = 3;
const IFA_ADDRESS = 1;
const IFA_LOCAL = 2;
const AF_INET = 2;
const AF_INET6 = 10;

export const interfaceAddresses = (): InterfaceAddress[] =>
  parseInterfaceAddresses(netlinkDump(dumpRequest(RTM_GETLINK)), netlinkDump(dumpRequest(RTM_GETADDR)));

function dumpRequest(type: number): Buffer {
  const request = Buffer.alloc(HEADER_BYTES + 4);
  request.writeUInt32LE(request.length, 0);
  request.writeUInt16LE(type, 4);
  request.writeUInt16LE(NLM_F_DUMP, 6);
  return request;
}

type Message = { readonly type: number; readonly body: Buffer };

export function parseInterfaceAddresses(links: readonly Buffer[], addresses: readonly Buffer[]): InterfaceAddress[] {
  const names = new Map<number, string>();
  for (const { type, body } of messagesOf(links)) {
    if (type !== RTM_NEWLINK || body.length < LINK_BYTES) continue;
    const name = attributesOf(body.subarray(LINK_BYTES)).get(IFLA_IFNAME);
    if (name !== undefined) names.set(body.readInt32LE(4), name.toString('latin1').replace(/\0.*$/s, ''));
  }
  const found: InterfaceAddress[] = [];
  for (const { type, body } of messagesOf(addresses)) {
    if (type !== RTM_NEWADDR || body.length < ADDRESS_BYTES) continue;
    const attributes = attributesOf(body.subarray(ADDRESS_BYTES));
    // On a point-to-point link the plain address is the peer's.
    const bytes = attributes.get(IFA_LOCAL) ?? attributes.get(IFA_ADDRESS);
    const device = names.get(body.readUInt32LE(4));
    const address = bytes === undefined ? undefined : textOf(body.readUInt8(0), bytes);
    if (device !== undefined && address !== undefined) found.push({ device, address });
  }
  return found;
}

function* messagesOf(buffers: readonly Buffer[]): Generator<Message> {
  for (const buffer of buffers) {
    for (let at = 0; at + HEADER_BYTES <= buffer.length;) {
      const length = buffer.readUInt32LE(at);
      if (length < HEADER_BYTES || at + length > buffer.length) return;
      const type = buffer.readUInt16LE(at + 4);
      if (type === NLMSG_ERROR) throw new KubeletError('internal', 'the kernel refused to list its network interfaces');
      yield { type, body: buffer.subarray(at + HEADER_BYTES, at + length) };
      at += (length + 3) & ~3;
    }
  }
}

function attributesOf(bytes: Buffer): Map<number, Buffer> {
  const attributes = new Map<number, Buffer>();
  for (let at = 0; at + 4 <= bytes.length;) {
    const length = bytes.readUInt16LE(at);
    if (length < 4 || at + length > bytes.length) break;
    attributes.set(bytes.readUInt16LE(at + 2) & 0x3fff, bytes.subarray(at + 4, at + length));
    at += (length + 3) & ~3;
  }
  return attributes;
}

function textOf(family: number, bytes: Buffer): string | undefined {
  if (family === AF_INET && bytes.length === 4) return [...bytes].join('.');
  if (family !== AF_INET6 || bytes.length !== 16) return undefined;
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1); // its shortest form
}
