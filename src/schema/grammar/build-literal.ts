import { BLANK, type Part, sequence, SPACE, text } from "./part.ts";

/** One JSON value, compact or with space between its tokens. */
export function literalOf(value: unknown): Part {
  if (Array.isArray(value)) return enclosed("[", value.map(literalOf), "]");
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).map(([name, field]) =>
      sequence(text(`${JSON.stringify(name)}:`), BLANK, literalOf(field)),
    );
    return enclosed("{", fields, "}");
  }
  return text(JSON.stringify(value) ?? "null");
}

function enclosed(open: string, parts: readonly Part[], close: string): Part {
  const separated = parts.flatMap((part, index) => (index === 0 ? [part] : [SEPARATOR, part]));
  return sequence(text(open), SPACE, ...separated, ...(parts.length > 0 ? [SPACE] : []), text(close));
}

/** Between two items or properties. */
export const SEPARATOR: Part = sequence(text(","), SPACE);
