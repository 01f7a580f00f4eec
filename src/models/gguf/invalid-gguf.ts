/** What is wrong with a GGUF file, in words that complete "… cannot be used: ". */
export class InvalidGguf extends Error {
  override readonly name = "InvalidGguf";
}

/** A number that a header claims, for people; none that makes sense is beyond 2^53. */
export function claimed(count: number): string {
  return Number.isSafeInteger(count) ? String(count) : "impossibly many";
}

/** Longest part of a name that a message shows: a damaged file has some of many kilobytes. */
const SHOWN_CHARACTERS = 80;

/** A name from a file, for people. */
export function quoted(name: string): string {
  const shown = JSON.stringify(name.slice(0, SHOWN_CHARACTERS));
  return name.length > SHOWN_CHARACTERS ? `${shown} …` : shown;
}
