import { tryJson } from "../../json/try-json.ts";

/**
 * Parses the arguments of a tool call. When max_tokens cut them off, keeps the complete part, as the official client
 * does with a stream: open brackets are closed, and members or items that may be incomplete are dropped. Returns an
 * empty object when the text is not an object.
 */
export function parseInput(text: string): Record<string, unknown> {
  const { last, rest } = cuts(text);
  // A number at the very end may be missing digits.
  const candidates = /[\d.]$/.test(text) ? [last] : [text + rest, last];
  for (const candidate of candidates) {
    const value = tryJson(candidate);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  }
  return {};
}

/** `rest` closes all open brackets; `last` is the text cut after its last complete item and closed. */
function cuts(text: string): { last: string; rest: string } {
  const open: string[] = [];
  const closing = (): string => open.toReversed().join("");
  let last = "";
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)|[{}[\],]/gs)) {
    if (token === "{" || token === "[") {
      open.push(token === "{" ? "}" : "]");
      last = text.slice(0, index + 1) + closing();
    } else if (token === "}" || token === "]") open.pop();
    else if (token === ",") last = text.slice(0, index) + closing();
  }
  return { last, rest: closing() };
}
