/**
 * The arguments of a tool call as an object. Of arguments that the length limit has cut, what was complete, as the
 * API's own client makes of the pieces of a stream: members, items and brackets that were begun are closed or, where
 * there is no telling how they would have gone on, left out. Empty when the text is not an object.
 */
export function parseInput(text: string): Record<string, unknown> {
  const { last, rest } = cuts(text);
  // More digits might have followed a number at the very end.
  const candidates = /[\d.]$/.test(text) ? [last] : [text + rest, last];
  for (const candidate of candidates) {
    const value = tryParse(candidate);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  }
  return {};
}

/** What closes the whole text, and the text up to the last place where it can be closed for certain, closed. */
function cuts(text: string): { last: string; rest: string } {
  const open: string[] = [];
  const closing = (): string => open.toReversed().join("");
  let last = "";
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*(?:"|$)|[{}[\],]/gs)) {
    if (token === "{" || token === "[") {
      open.push(token === "{" ? "}" : "]");
      last = text.slice(0, index + 1) + closing();
    } else if (token === "}" || token === "]") open.pop();
    else if (token === ",") last = text.slice(0, index) + closing();
  }
  return { last, rest: closing() };
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
