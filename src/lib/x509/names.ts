// Subject names (CN, O, …) and subject alternative names, to DER and back.
import { isIP } from 'node:net';
import { KubeletError } from '../errors.ts';
import {
  children,
  contextPrimitive,
  oid,
  printableString,
  readOid,
  readText,
  sequence,
  setOf,
  utf8String,
  type DerNode,
} from './der.ts';

export type Subject = { readonly commonName: string; readonly organizations?: readonly string[] };

const COMMON_NAME = '2.5.4.3';
const ORGANIZATION = '2.5.4.10';
const PRINTABLE = /^[A-Za-z0-9 '()+,\-./:=?]*$/;

const text = (value: string): Buffer => (PRINTABLE.test(value) ? printableString(value) : utf8String(value));
const attribute = (type: string, value: string): Buffer => sequence(oid(type), text(value));

/** Organizations share one relative name, the common name follows: the order Go writes and reads. */
export function subjectDer(subject: Subject): Buffer {
  const organizations = subject.organizations ?? [];
  return sequence(
    ...(organizations.length > 0 ? [setOf(...organizations.map((o) => attribute(ORGANIZATION, o)))] : []),
    ...(subject.commonName === '' ? [] : [setOf(attribute(COMMON_NAME, subject.commonName))]),
  );
}

export function readSubject(node: DerNode): Required<Subject> {
  let commonName = '';
  const organizations: string[] = [];
  for (const relative of children(node))
    for (const pair of children(relative)) {
      const [type, value] = children(pair);
      if (type === undefined || value === undefined) continue;
      const name = readOid(type);
      if (name === COMMON_NAME) commonName = readText(value);
      if (name === ORGANIZATION) organizations.push(readText(value));
    }
  return { commonName, organizations };
}

export type AlternativeNames = {
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
};

const EMAIL = 0x81;
const DNS = 0x82;
const URI = 0x86;
const IP = 0x87;

export const hasAlternativeNames = (names: AlternativeNames): boolean =>
  (names.dnsNames ?? []).length + (names.ipAddresses ?? []).length > 0;

/** The GeneralNames value of the subjectAltName extension. */
export const alternativeNamesDer = (names: AlternativeNames): Buffer =>
  sequence(
    ...(names.dnsNames ?? []).map((name) => contextPrimitive(DNS & 0x1f, Buffer.from(name, 'ascii'))),
    ...(names.ipAddresses ?? []).map((address) => contextPrimitive(IP & 0x1f, addressBytes(address))),
  );

export type ReadAlternativeNames = {
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  readonly emailAddresses: readonly string[];
  readonly uris: readonly string[];
};

export function readAlternativeNames(node: DerNode): ReadAlternativeNames {
  const of = (tag: number): Buffer[] =>
    children(node)
      .filter((name) => name.tag === tag)
      .map((name) => name.content);
  const texts = (tag: number): string[] => of(tag).map((bytes) => bytes.toString('latin1'));
  return {
    dnsNames: texts(DNS),
    ipAddresses: of(IP).map(addressText),
    emailAddresses: texts(EMAIL),
    uris: texts(URI),
  };
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail] = v4TailAsHex(address).split('::');
  const groups = (part: string): number[] => (part === '' ? [] : part.split(':').map((g) => Number.parseInt(g, 16)));
  const before = groups(head);
  const after = tail === undefined ? [] : groups(tail);
  const middle = Array.from({ length: 8 - before.length - after.length }, () => 0);
  return Buffer.from([...before, ...middle, ...after].flatMap((group) => [group >> 8, group & 0xff]));
}

/** `::ffff:1.2.3.4` → `::ffff:102:304`. */
const v4TailAsHex = (address: string): string =>
  address.replace(
    /(?<=:)(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/,
    (_, a: string, b: string, c: string, d: string) =>
      [Number(a) * 256 + Number(b), Number(c) * 256 + Number(d)].map((group) => group.toString(16)).join(':'),
  );

const V4_IN_V6 = Buffer.from('00000000000000000000ffff', 'hex');

function addressText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) throw new KubeletError('invalid', `an IP address of ${bytes.length} bytes`);
  // As Go prints it.
  if (bytes.subarray(0, 12).equals(V4_IN_V6)) return bytes.subarray(12).join('.');
  const groups: string[] = [];
  for (let i = 0; i + 1 < bytes.length; i += 2) groups.push(bytes.readUInt16BE(i).toString(16));
  return new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1);
}
