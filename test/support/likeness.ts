/** Cosine of two vectors of length one, as embeddings are. Of texts computed beside others the last digits differ. */
export function likeness(one: readonly number[], other: readonly number[]): number {
  if (one.length !== other.length) throw new Error(`${one.length} components against ${other.length}`);
  return one.reduce((sum, value, at) => sum + value * other[at]!, 0);
}
