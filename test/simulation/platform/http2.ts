// node:http2 is not reached in the simulation: gRPC and the API server's connections are replaced above it.
const refuse = (): never => {
  throw new Error('node:http2 is not simulated');
};
export const connect = refuse;
export const createServer = refuse;
export const createSecureServer = refuse;
export const constants: Record<string, number> = {};
