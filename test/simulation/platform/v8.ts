// node:v8 and node:vm: memory of the real process is nobody's business here.
export const setFlagsFromString = (): void => undefined;
export const runInNewContext = (): (() => void) => () => undefined;
