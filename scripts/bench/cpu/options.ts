import os from "node:os";
import path from "node:path";
import { type ShapeName, SHAPES } from "./bench-models.ts";
import type { Clock } from "./processor-time.ts";

/** Where models of the benchmarks on the CPU are kept unless `--cache` says otherwise. */
export const BENCH_CACHE = path.join(os.tmpdir(), "daybreak-bench-cpu");

export const SHAPE_NAMES = Object.keys(SHAPES).filter((name): name is ShapeName => name in SHAPES);

export const CLOCKS = ["wall", "processor"] as const satisfies readonly Clock[];

/**
 * The value of an option that has to be one of some names.
 * @throws Error otherwise
 */
export function chosen<Name extends string>(
  option: string,
  value: string | undefined,
  known: readonly Name[],
): Name {
  const name = known.find((each) => each === value);
  if (name === undefined) throw new Error(`--${option} takes ${known.join(", ")}, not ${value}`);
  return name;
}
