/**
 * Length of the longest end of `text` that is a beginning of `tag`, without being the whole tag: what must be
 * held back because the rest of the tag may come with the next piece.
 */
export function heldTagLength(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length -= 1) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}
