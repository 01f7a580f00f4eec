const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Limits on the structure of a JSON text. */
export interface JsonBounds {
  /** Nested arrays and objects. */
  readonly depth: number;
  /** Values of any type, including nested ones. */
  readonly values: number;
}

/**
 * Checks the structure of a JSON text before it is parsed, because parsing costs time and memory for each value. Invalid
 * JSON passes; parsing detects it.
 * @returns the exceeded limit, or undefined
 */
export function exceededBound(text: string, bounds: JsonBounds): keyof JsonBounds | undefined {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at + 1);
        if (at < 0) return undefined;
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        depth += 1;
        values += 1;
        if (depth > bounds.depth) return "depth";
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth -= 1;
        break;
      case COMMA:
        values += 1;
        break;
    }
    if (values > bounds.values) return "values";
  }
  return undefined;
}

/** Position of the quote that ends a string; -1 if the string does not end in the text. */
export function endOfString(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin); end >= 0; end = text.indexOf('"', end + 1)) {
    let escape = end;
    while (escape > begin && text.charCodeAt(escape - 1) === BACKSLASH) escape -= 1;
    if ((end - escape) % 2 === 0) return end;
  }
  return -1;
}
