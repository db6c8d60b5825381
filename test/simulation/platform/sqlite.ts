// node:sqlite for the embedded API server, which keeps all objects in memory besides: nothing is stored.
class Statement {
  run = (): void => undefined;
  get = (): undefined => undefined;
  iterate = (): never[] => [];
}
export class DatabaseSync {
  exec = (): void => undefined;
  prepare = (): Statement => new Statement();
  close = (): void => undefined;
}
