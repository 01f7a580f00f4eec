const LINE_BREAK = 10;
/** What some programs write in front of UTF-8. */
const BYTE_ORDER_MARK: readonly number[] = [0xef, 0xbb, 0xbf];

interface FileLine {
  /** From 1. */
  readonly number: number;
  /** In the file, in bytes. */
  readonly start: number;
  readonly length: number;
  /** Absent if the line is too long. */
  readonly bytes?: Uint8Array;
}

/** The lines of a file that are not blank, without a byte order mark at its beginning. Of one that is too long, no more than that is in memory. */
export async function* splitLines(
  pieces: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<FileLine, void, undefined> {
  let number = 1;
  let start = 0;
  let length = 0;
  let held: Uint8Array[] = [];
  const take = (piece: Uint8Array): void => {
    length += piece.byteLength;
    if (length <= maxBytes) held.push(piece);
    else held = [];
  };
  const line = (): FileLine | undefined => {
    const whole = length <= maxBytes ? joined(held, length) : undefined;
    const skipped = start === 0 && whole && hasMark(whole) ? BYTE_ORDER_MARK.length : 0;
    const bytes = whole?.subarray(skipped);
    if (bytes && isBlank(bytes)) return undefined;
    return { number, start: start + skipped, length: length - skipped, ...(bytes && { bytes }) };
  };
  for await (const piece of pieces) {
    let from = 0;
    for (let at = piece.indexOf(LINE_BREAK); at >= 0; at = piece.indexOf(LINE_BREAK, from)) {
      take(piece.subarray(from, at));
      const found = line();
      if (found) yield found;
      number += 1;
      start += length + 1;
      length = 0;
      held = [];
      from = at + 1;
    }
    if (from < piece.byteLength) take(piece.subarray(from));
  }
  const last = line();
  if (last) yield last;
}

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = pieces;
  if (only && pieces.length === 1) return only;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole;
}

/** Whether a text begins with a byte order mark. */
export function hasMark(bytes: Uint8Array): boolean {
  return BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte);
}

/** Spaces, tabs and carriage returns. */
function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 32 || byte === 9 || byte === 13);
}
