import { stripVTControlCharacters } from "node:util";

const GAP = "  ";

/** Columns of a terminal that `text` takes: attributes take none, wide characters (East Asian, for example) two. */
function width(text: string): number {
  let columns = 0;
  for (const character of stripVTControlCharacters(text)) {
    columns += /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]/u.test(
      character,
    )
      ? 2
      : 1;
  }
  return columns;
}

/** Lines of columns that stand under their headers; no line ends in spaces. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = header.map((title, column) =>
    Math.max(width(title), ...rows.map((row) => width(row[column] ?? ""))),
  );
  return [header, ...rows].map((row) =>
    row
      .map((cell, column) => cell + " ".repeat(Math.max(0, (widths[column] ?? 0) - width(cell))))
      .join(GAP)
      .trimEnd(),
  );
}

/** Lines of "name  value" with the values under each other. */
export function formatFields(fields: readonly (readonly [name: string, value: string])[]): string[] {
  const longest = Math.max(0, ...fields.map(([name]) => width(name)));
  return fields.map(([name, value]) => `${name}${" ".repeat(longest - width(name))}${GAP}${value}`.trimEnd());
}
