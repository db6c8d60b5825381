// node:tls is not reached in the simulation.
export class TLSSocket {}
export const connect = (): never => {
  throw new Error('node:tls is not simulated');
};
export const DEFAULT_CIPHERS = '';
