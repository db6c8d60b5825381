// node:crypto with the simulation's own random numbers. Digests are the real ones.
import real from 'node:crypto';
import { machine } from '../engine/machine.ts';

export const {
  createHash,
  createHmac,
  hash,
  timingSafeEqual,
  createPublicKey,
  createPrivateKey,
  X509Certificate,
  constants,
  sign,
  verify,
  generateKeyPair,
  generateKeyPairSync,
  KeyObject,
} = real;

export const randomBytes = (length: number): Buffer => machine().scheduler.agentRandom.bytes(length);

export function randomUUID(): string {
  const bytes = randomBytes(16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

export const randomInt = (low: number, high: number): number => machine().scheduler.agentRandom.int(low, high - 1);
