import { isMultipleOf, type NumberBounds } from "../../../src/grammar/numbers/number-bounds.ts";

/** True if a number satisfies the bounds. */
export function numberSatisfies(value: number, bounds: NumberBounds): boolean {
  const { minimum = -Infinity, maximum = Infinity, exclusiveMinimum, exclusiveMaximum } = bounds;
  if (!Number.isFinite(value) || value < minimum || value > maximum) return false;
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) return false;
  if (exclusiveMaximum !== undefined && value >= exclusiveMaximum) return false;
  if (bounds.isInteger && !Number.isInteger(value)) return false;
  return (bounds.multipleOf ?? []).every((step) => isMultipleOf(value, step));
}
