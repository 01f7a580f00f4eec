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
