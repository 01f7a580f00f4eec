/** Parses a decimal number; other notations that JavaScript accepts are refused. */
export function readNumber(text: string): number | undefined {
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined;
}
