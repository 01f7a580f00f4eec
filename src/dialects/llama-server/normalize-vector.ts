/** What the largest part becomes, so that the parts fit into 16 bits. */
const LARGEST = 32_760;

/** A vector scaled as llama.cpp's server does. @param norm 0: by its largest part; otherwise which norm is 1 */
export function normalizeVector(vector: readonly number[], norm: number): number[] {
  const sizes = vector.map(Math.abs);
  const length =
    norm === 0
      ? sizes.reduce((most, size) => Math.max(most, size), 0) / LARGEST
      : sizes.reduce((sum, size) => sum + size ** norm, 0) ** (1 / norm);
  return vector.map((part) => (length > 0 ? part / length : 0));
}
