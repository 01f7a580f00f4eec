/** Middle value; the mean of the two in the middle of an even number. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** "median (smallest–largest)" with the given number of decimals. */
export function spread(values: readonly number[], decimals = 1): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return `${median(values).toFixed(decimals)} (${low.toFixed(decimals)}–${high.toFixed(decimals)})`;
}

/** Lines of a Markdown table. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [tableLine(head), tableLine(head.map(() => "---")), ...rows.map(tableLine)].join("\n");
}

function tableLine(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}
