import { InvalidArgumentError } from "commander";

/** A parser for an option that is a number; the daemon checks its range. */
export function parseNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new InvalidArgumentError("Not a number.");
  return value;
}

/** A parser for an option that is a whole number of at least `minimum`. */
export function parseInteger(minimum: number): (text: string) => number {
  return (text) => {
    const value = parseNumber(text);
    if (!Number.isSafeInteger(value) || value < minimum) {
      throw new InvalidArgumentError(`Not a whole number of at least ${minimum}.`);
    }
    return value;
  };
}
