/** True for a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses a JSON text; undefined for invalid JSON. */
export function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Splits a stream into its complete lines, one list for each chunk that arrives. Works in browsers, too. */
export async function* lineChunks(
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
): AsyncGenerator<readonly string[], void, undefined> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const chunk = await reader?.read();
    if (!chunk || chunk.done) return;
    const lines = (rest + chunk.value).split("\n");
    rest = lines.pop() ?? "";
    yield lines;
  }
}

/**
 * Approximates the length of a value as JSON without writing it: counts names and texts, and one per value. Not recursive,
 * because the value may be nested to any depth.
 */
export function approximateJsonLength(document: unknown): number {
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

/** Copy of an object without its undefined fields. */
export function withoutUndefined<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  const defined = Object.entries(fields).filter(([, value]) => value !== undefined);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- these are its fields
  return Object.fromEntries(defined) as { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> };
}
