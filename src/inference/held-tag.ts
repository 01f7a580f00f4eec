/**
 * Length of the longest end of `text` that is an incomplete beginning of `tag`, which must be held back because the rest of
 * the tag may follow.
 */
export function heldTagLength(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length -= 1) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}
