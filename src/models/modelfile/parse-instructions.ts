import { ServiceError } from "../../errors/service-error.ts";

const HEREDOC = '"""';
/** Escapes in double quotes; a backslash before any other character is literal. */
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\" };
const ESCAPED = /\\([nrt"\\])/g;
const QUOTED = /^"((?:[^"\\]|\\.)*)"$/s;

/** Directives and the form of their values: text, a key and text, or a path, in which backslashes are literal. */
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

export interface Instruction {
  /** Line of the directive, from 1. */
  readonly line: number;
  readonly directive: Directive;
  /** In lowercase; empty for directives without keys. */
  readonly key: string;
  /** Without quotes, and with escapes resolved; a path as written. */
  readonly text: string;
}

/** Maximum characters of a Modelfile; the longest values, license texts, have a tenth of this. */
export const MAX_MODELFILE_LENGTH = 1024 * 1024;

/**
 * Parses a Modelfile. Each line is empty, a comment (`#`) or a directive, in any case, with its value: text to the end
 * of the line, text in double quotes with escapes, several lines between `"""`, or several lines without quotes between
 * `"`, as Ollama prints them.
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
    const { text, endsAt = at } = readValue(lines, at, rest, DIRECTIVES[directive] === "path");
    instructions.push({ line, directive, key, text });
    at = endsAt;
  }
  return instructions;
}

/** Text of a value, and the index of its last line, if that is not its first. */
interface Value {
  readonly text: string;
  readonly endsAt?: number;
}

function readValue(lines: readonly string[], at: number, rest: string, isPath: boolean): Value {
  const quoted = isPath ? undefined : readQuotedLines(lines, at, rest);
  if (quoted) return quoted;
  if (!rest.startsWith(HEREDOC)) return { text: isPath ? rest : readText(rest, at + 1) };
  // A heredoc consists of the untrimmed lines.
  return readHeredoc(lines, at, lines[at]!.trimEnd().length - rest.length + HEREDOC.length);
}

/** Returns the joined LICENSE directives; undefined if there are none. */
export function licenseText(instructions: readonly Instruction[]): string | undefined {
  const texts = instructions.filter(({ directive }) => directive === "LICENSE").map(({ text }) => text);
  return texts.length > 0 ? texts.join("\n\n") : undefined;
}

function splitLine(content: string, line: number): { directive: Directive; key: string; rest: string } {
  const [, word = "", value = ""] = /^(\S+)\s*(.*)$/s.exec(content) ?? [];
  const directive = word.toUpperCase();
  if (!isDirective(directive)) {
    const shown = JSON.stringify(word.slice(0, 40));
    throw modelfileError(
      line,
      `${shown} is not a directive. The directives are ${Object.keys(DIRECTIVES).join(", ")}.`,
    );
  }
  if (DIRECTIVES[directive] !== "key") {
    if (value === "") throw modelfileError(line, `${directive} needs a value.`);
    return { directive, key: "", rest: value };
  }
  const [, key = "", rest = ""] = /^(\S+)\s*(.*)$/s.exec(value) ?? [];
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

/** Reads several lines between double quotes, without escapes and inner quotes; undefined for other values. */
function readQuotedLines(lines: readonly string[], at: number, rest: string): Value | undefined {
  if (!rest.startsWith('"') || rest.includes('"', 1)) return undefined;
  const endsAt = lines.findIndex((line, index) => index > at && line.includes('"'));
  const last = lines[endsAt]?.trimEnd();
  if (last === undefined || last.indexOf('"') !== last.length - 1) return undefined;
  // Uses the untrimmed lines, because spaces at the end of the first line belong to the text.
  const first = lines[at]!.slice(lines[at]!.indexOf('"') + 1);
  return { text: [first, ...lines.slice(at + 1, endsAt), last.slice(0, -1)].join("\n"), endsAt };
}

/** Reads from position `from` after the opening quotes to the closing ones, in this or a later line. */
function readHeredoc(lines: readonly string[], at: number, from: number): Value {
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

/** Parses a boolean. @throws ServiceError invalid_modelfile */
export function readBoolean(line: number, name: string, text: string): boolean {
  const value = text.toLowerCase();
  if (value === "true") return true;
  if (value === "false") return false;
  throw modelfileError(line, `${name} must be true or false.`);
}

/** Creates the error for a line of a Modelfile; lines count from 1. */
export function modelfileError(line: number, message: string, cause?: unknown): ServiceError {
  return new ServiceError("invalid_modelfile", `Modelfile, line ${line}: ${message}`, {
    param: "modelfile",
    ...(cause !== undefined && { cause }),
  });
}

/** Returns the text of a value in double quotes; undefined if the quotes do not match. */
function unquote(value: string): string | undefined {
  return QUOTED.exec(value)?.[1]?.replaceAll(
    ESCAPED,
    (_, character: string) => ESCAPES[character] ?? character,
  );
}

/** Quotes a text so that it parses back to the same text: with `"""` if it has several lines. */
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

/** Removes double quotes around a path, in which backslashes are literal. */
export function unquotePath(value: string): string {
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}

/** Value of a PARAMETER in Ollama's JSON; null: not set. */
type ParameterValue = string | number | boolean | readonly string[] | null;

/**
 * Writes the lines of a Modelfile for a parameter and its value.
 * @throws ServiceError invalid_parameter for a name that is no single word
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
  // A negative number means the default.
  if (name === "num_gpu") return Number(value) < 0 ? [] : [`GPU_LAYERS ${scalarText(value)}`];
  return [`PARAMETER ${name} ${scalarText(value)}`];
}

/** Formats a value; strings are quoted, so that they cannot start a new line. */
function scalarText(value: string | number | boolean): string {
  return typeof value === "string" ? quote(value) : String(value);
}
