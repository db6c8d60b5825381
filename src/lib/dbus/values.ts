// What D-Bus values are in JavaScript, and the names that may stand in a message.
import { KubeletError } from '../errors.ts';

/** A value that carries its own type. */
export class Variant {
  readonly signature: string;
  readonly value: DBusValue;

  constructor(signature: string, value: DBusValue) {
    this.signature = signature;
    this.value = value;
  }
}

/**
 * Numbers up to 32 bits and doubles are numbers, 64 bits are bigints, `ay` is bytes; arrays and structs are arrays, a dict is
 * an array of pairs. A descriptor (`h`) is its index among the message's descriptors.
 */
export type DBusValue = number | bigint | boolean | string | Uint8Array | Variant | readonly DBusValue[];

const MAX_NAME = 255;
const OBJECT_PATH = /^\/(?:[A-Za-z0-9_]+(?:\/[A-Za-z0-9_]+)*)?$/;
const INTERFACE = /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+$/;
const MEMBER = /^[A-Za-z_][A-Za-z0-9_]*$/;
const BUS_NAME = /^(?::[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+|[A-Za-z_-][A-Za-z0-9_-]*(?:\.[A-Za-z_-][A-Za-z0-9_-]*)+)$/;

export const isObjectPath = (text: string): boolean => OBJECT_PATH.test(text);

const NAMES = {
  interface: INTERFACE,
  member: MEMBER,
  destination: BUS_NAME,
  sender: BUS_NAME,
  error: INTERFACE,
} as const;

/** Throws `invalid` where the bus would hang up on us. */
export function checkName(kind: keyof typeof NAMES | 'path', text: string): string {
  const fine = kind === 'path' ? isObjectPath(text) : text.length <= MAX_NAME && NAMES[kind].test(text);
  if (!fine) throw new KubeletError('invalid', `D-Bus ${kind} ${JSON.stringify(text.slice(0, 64))} is malformed`);
  return text;
}
