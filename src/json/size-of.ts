/**
 * About how many characters a value has as JSON, without writing it: only names, texts and numbers are counted, at
 * least one for each value. Walks without recursion, for the value may be as deep as it likes.
 */
export function sizeOf(document: unknown): number {
  const open = [document];
  let size = 0;
  while (open.length > 0) {
    const value = open.pop();
    size += 1;
    if (typeof value === "string") size += value.length;
    else if (typeof value === "object" && value !== null) {
      for (const [name, field] of Object.entries(value)) {
        if (!Array.isArray(value)) size += name.length;
        open.push(field);
      }
    }
  }
  return size;
}
