/** Cuts a text into deltas of random lengths, including empty ones. */
export function randomPieces(text: string, random: () => number, maxLength = 6): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    const length = Math.floor(random() * (maxLength + 1));
    pieces.push(text.slice(at, at + length));
    at += length;
  }
  return pieces;
}
