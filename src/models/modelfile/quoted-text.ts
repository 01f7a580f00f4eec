/** Escapes of text in double quotes; a backslash before anything else stands for itself. */
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\" };
const ESCAPED = /\\([nrt"\\])/g;
const QUOTED = /^"((?:[^"\\]|\\.)*)"$/s;

/** The text of a value in double quotes; undefined when the quotes do not match. */
export function unquote(value: string): string | undefined {
  return QUOTED.exec(value)?.[1]?.replaceAll(
    ESCAPED,
    (_, character: string) => ESCAPES[character] ?? character,
  );
}

/** Text in the form that reads best and is read back as it was: with `"""` when it has several lines. */
export function quote(text: string): string {
  const isHeredoc = text.includes("\n") && !/\r|"""|"$/.test(text);
  if (isHeredoc) return `"""${text}"""`;
  const escaped = text
    .replaceAll("\\", "\\\\")
    .replaceAll('"', String.raw`\"`)
    .replaceAll("\n", String.raw`\n`)
    .replaceAll("\r", String.raw`\r`)
    .replaceAll("\t", String.raw`\t`);
  return `"${escaped}"`;
}

/** A path between double quotes, in which a backslash is a backslash; a path without quotes stays as it is. */
export function unquotePath(value: string): string {
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}
