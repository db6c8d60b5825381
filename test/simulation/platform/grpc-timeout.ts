// Not sent anywhere here.
export const grpcTimeout = (ms: number): string => `${Math.ceil(ms)}m`;
