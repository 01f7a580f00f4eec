import { ServiceError } from "../../errors/service-error.ts";

const HEREDOC = '"""';
/** Escapes in double quotes; a backslash before any other character is literal. */
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\" };
const ESCAPED = /\\([nrt"\\])/g;
const QUOTED = /^"((?:[^"\\]|\\.)*)"$/s;

/** Directives and their values: text, a key and text, or a path, in which backslashes are literal. */
const DIRECTIVES = {
  FROM: "path",
  PARAMETER: "key",
  SYSTEM: "text",
  TEMPLATE: "text",
  LICENSE: "text",
  ADAPTER: "path",
  GPU_LAYERS: "text",
  FLASH_ATTENTION: "text",
  VISION_PROJECTOR: "path",
  DRAFT: "path",
  DIGEST: "text",
  THINKING: "key",
  TOOLFORMAT: "key",
  CAPABILITY: "key",
  AUTHOR: "text",
  MESSAGE: "key",
  RENDERER: "text",
  PARSER: "text",
  REQUIRES: "text",
} as const;
type Directive = keyof typeof DIRECTIVES;

/** One directive with what it says. */
export interface Instruction {
  /** Line of the directive, from 1. */
  readonly line: number;
  readonly directive: Directive;
  /** In lowercase; empty for directives without keys. */
  readonly key: string;
  /** Without quotes, and with escapes resolved; a path as written. */
  readonly text: string;
}

/** License texts are the longest values in a Modelfile, and are a tenth of this. */
export const MAX_MODELFILE_LENGTH = 1024 * 1024;

/**
 * Parses a Modelfile. Each line is a comment (`#`), empty, or a directive, in any case, with its value: plain
 * text to the end of the line, text in double quotes with escapes, or text of many lines between `"""`, or between `"`
 * where it has none, as Ollama prints it.
 * @throws ServiceError invalid_modelfile
 */
export function parseInstructions(modelfile: string): Instruction[] {
  if (modelfile.length > MAX_MODELFILE_LENGTH) {
    throw modelfileError(1, `it is longer than ${MAX_MODELFILE_LENGTH} characters.`);
  }
  const lines = modelfile
    .replace(/^\uFEFF/, "")
    .replaceAll("\r\n", "\n")
    .split("\n");
  const nul = lines.findIndex((line) => line.includes("\0"));
  if (nul !== -1) throw modelfileError(nul + 1, "it has a NUL character, so this is not a text file.");
  const instructions: Instruction[] = [];
  for (let at = 0; at < lines.length; at++) {
    const content = lines[at]!.trim();
    if (content === "" || content.startsWith("#")) continue;
    const line = at + 1;
    const { directive, key, rest } = splitLine(content, line);
    const quoted = DIRECTIVES[directive] === "path" ? undefined : readQuotedLines(lines, at, rest);
    if (quoted) {
      instructions.push({ line, directive, key, text: quoted.text });
      at = quoted.endsAt;
      continue;
    }
    if (!rest.startsWith(HEREDOC)) {
      const text = DIRECTIVES[directive] === "path" ? rest : readText(rest, line);
      instructions.push({ line, directive, key, text });
      continue;
    }
    // The text of a heredoc is taken from the untrimmed lines.
    const opened = lines[at]!.trimEnd().length - rest.length + HEREDOC.length;
    const { text, endsAt } = readHeredoc(lines, at, opened);
    instructions.push({ line, directive, key, text });
    at = endsAt;
  }
  return instructions;
}

/** The joined LICENSE directives; undefined if there are none. */
export function licenseText(instructions: readonly Instruction[]): string | undefined {
  const texts = instructions.filter(({ directive }) => directive === "LICENSE").map(({ text }) => text);
  return texts.length > 0 ? texts.join("\n\n") : undefined;
}

function splitLine(content: string, line: number): { directive: Directive; key: string; rest: string } {
  const [, word = "", behind = ""] = /^(\S+)\s*(.*)$/s.exec(content) ?? [];
  const directive = word.toUpperCase();
  if (!isDirective(directive)) {
    const shown = JSON.stringify(word.slice(0, 40));
    throw modelfileError(
      line,
      `${shown} is not a directive. The directives are ${Object.keys(DIRECTIVES).join(", ")}.`,
    );
  }
  if (DIRECTIVES[directive] !== "key") {
    if (behind === "") throw modelfileError(line, `${directive} needs a value.`);
    return { directive, key: "", rest: behind };
  }
  const [, key = "", rest = ""] = /^(\S+)\s*(.*)$/s.exec(behind) ?? [];
  if (key === "" || rest === "") throw modelfileError(line, `${directive} needs a name and a value.`);
  return { directive, key: key.toLowerCase(), rest };
}

function isDirective(word: string): word is Directive {
  return Object.hasOwn(DIRECTIVES, word);
}

function readText(raw: string, line: number): string {
  if (!raw.startsWith('"')) return raw;
  const text = unquote(raw);
  if (text !== undefined) return text;
  throw modelfileError(
    line,
    'the value begins with a quote and does not end with its match; text of several lines stands between """.',
  );
}

/** A text of several lines between single double quotes, literal and without quotes inside; undefined for any other. */
function readQuotedLines(
  lines: readonly string[],
  at: number,
  rest: string,
): { text: string; endsAt: number } | undefined {
  if (!rest.startsWith('"') || rest.includes('"', 1)) return undefined;
  const endsAt = lines.findIndex((line, index) => index > at && line.includes('"'));
  const last = lines[endsAt]?.trimEnd();
  if (last === undefined || last.indexOf('"') !== last.length - 1) return undefined;
  // The text is taken from the untrimmed lines: spaces at the end of the first belong to it.
  const first = lines[at]!.slice(lines[at]!.indexOf('"') + 1);
  return { text: [first, ...lines.slice(at + 1, endsAt), last.slice(0, -1)].join("\n"), endsAt };
}

/** Reads from after the opening quotes to the closing ones, in this or a later line. */
function readHeredoc(lines: readonly string[], at: number, from: number): { text: string; endsAt: number } {
  const parts: string[] = [];
  for (let index = at; index < lines.length; index++) {
    const part = lines[index]!.slice(index === at ? from : 0);
    const close = part.indexOf(HEREDOC);
    if (close === -1) {
      parts.push(part);
      continue;
    }
    if (part.slice(close + HEREDOC.length).trim() !== "") {
      throw modelfileError(index + 1, 'there is text behind the closing """.');
    }
    return { text: [...parts, part.slice(0, close)].join("\n"), endsAt: index };
  }
  throw modelfileError(at + 1, 'the text that begins with """ never ends.');
}

/** The value of a boolean. */
export function readBoolean(line: number, name: string, text: string): boolean {
  const value = text.toLowerCase();
  if (value === "true") return true;
  if (value === "false") return false;
  throw modelfileError(line, `${name} must be true or false.`);
}

/** The error for a line of a Modelfile; lines count from 1. */
export function modelfileError(line: number, message: string, cause?: unknown): ServiceError {
  return new ServiceError("invalid_modelfile", `Modelfile, line ${line}: ${message}`, {
    param: "modelfile",
    ...(cause !== undefined && { cause }),
  });
}

/** The text of a value in double quotes; undefined if the quotes do not match. */
function unquote(value: string): string | undefined {
  return QUOTED.exec(value)?.[1]?.replaceAll(
    ESCAPED,
    (_, character: string) => ESCAPES[character] ?? character,
  );
}

/** Text in its most readable form that parses back to the same text: with `"""` if it has several lines. */
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

/** A path without its double quotes, in which backslashes are literal; a path without quotes is unchanged. */
export function unquotePath(value: string): string {
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}

/** A value of a PARAMETER in JSON, as Ollama has it; null says nothing. */
type ParameterValue = string | number | boolean | readonly string[] | null;

/**
 * The lines of a Modelfile for a parameter and its value.
 * @throws ServiceError invalid_parameter for a name that would not stay within its line
 */
export function parameterLines(name: string, value: ParameterValue): string[] {
  if (!/^\w+$/.test(name)) {
    throw new ServiceError(
      "invalid_parameter",
      `parameters: ${JSON.stringify(name.slice(0, 100))} is not a valid parameter name.`,
      { param: "parameters" },
    );
  }
  if (value === null) return [];
  if (typeof value === "object") return value.flatMap((item) => parameterLines(name, item));
  // Below 0 it means the daemon's own choice.
  if (name === "num_gpu") return Number(value) < 0 ? [] : [`GPU_LAYERS ${scalarText(value)}`];
  return [`PARAMETER ${name} ${scalarText(value)}`];
}

/** Quotes strings, so that a value cannot start a new line. */
function scalarText(value: string | number | boolean): string {
  return typeof value === "string" ? quote(value) : String(value);
}
