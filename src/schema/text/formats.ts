const PATTERNS: Readonly<Record<string, string>> = {
  uuid: "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
};

/** A pattern of texts that have a format. */
export function generatedFormat(name: string): string | undefined {
  return Object.hasOwn(PATTERNS, name) ? PATTERNS[name] : undefined;
}
