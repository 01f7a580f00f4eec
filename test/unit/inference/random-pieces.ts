/** A small generator of repeatable random numbers in [0, 1): mulberry32. */
export function randomSource(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Cuts a text into pieces of random lengths, empty ones among them. */
export function randomPieces(text: string, random: () => number, maxLength = 6): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    const length = Math.floor(random() * (maxLength + 1));
    pieces.push(text.slice(at, at + length));
    at += length;
  }
  return pieces;
}
