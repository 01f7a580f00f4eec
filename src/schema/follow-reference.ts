import type { JsonSchema } from "./normalize-schema.ts";

/**
 * The schema that a `$ref` means, within its own document: `#`, a JSON pointer (RFC 6901) behind `#`, or an anchor.
 * Undefined if there is none, or if it is in another document.
 */
export function followReference(
  root: JsonSchema | boolean,
  reference: string,
): JsonSchema | boolean | undefined {
  if (!reference.startsWith("#")) return undefined;
  const fragment = decoded(reference.slice(1));
  if (fragment === undefined) return undefined;
  if (fragment === "") return root;
  if (!fragment.startsWith("/")) return findAnchor(root, fragment);
  let place: unknown = root;
  for (const token of fragment.slice(1).split("/")) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof place !== "object" || place === null || !Object.hasOwn(place, name)) return undefined;
    place = (place as Record<string, unknown>)[name];
  }
  return isSchema(place) ? place : undefined;
}

function findAnchor(place: unknown, anchor: string): JsonSchema | undefined {
  if (typeof place !== "object" || place === null) return undefined;
  if (isSchema(place) && place["$anchor"] === anchor) return place;
  for (const inner of Object.values(place)) {
    const found = findAnchor(inner, anchor);
    if (found) return found;
  }
  return undefined;
}

function decoded(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return undefined;
  }
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "boolean" || (typeof value === "object" && value !== null && !Array.isArray(value));
}
