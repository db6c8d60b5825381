// What every scenario is given and gives back.
import type { Row } from '../rows.ts';
import type { World } from '../world.ts';

export type Scenario = {
  readonly name: string;
  /** One line for `--help`. */
  readonly asks: string;
  readonly run: (world: World, options: ScenarioOptions) => Promise<readonly Row[]>;
};

export type ScenarioOptions = {
  /** Fewer pods and rounds: for a look, not for the record. */
  readonly quick: boolean;
  /** The launcher that is measured. */
  readonly command: string;
  readonly env: NodeJS.ProcessEnv;
  readonly say: (line: string) => void;
};
