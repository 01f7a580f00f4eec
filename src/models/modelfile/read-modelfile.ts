import nodePath from "node:path";
import { parseDecimal } from "../../config/config-values.ts";
import { MAX_ADAPTER_SCALE, MAX_ADAPTERS } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { ModelSettings } from "../model.ts";
import { HUB_PREFIX, parseHubSpec, splitRevision } from "../names/hub-spec.ts";
import { looksLikePath, parseFilePath } from "../names/name-resolver.ts";
import { isModelName, isPlainPart, isRevision } from "../names/name-rules.ts";
import {
  isUnused,
  listParameters,
  REPEATABLE_PARAMETER,
  type UnusedDirective,
  unusedDirectives,
} from "./parameters.ts";
import {
  type Instruction,
  licenseText,
  modelfileError,
  parseInstructions,
  quote,
  unquotePath,
} from "./parse-instructions.ts";
import { readSettings } from "./read-settings.ts";

/** Parsed and checked content of a Modelfile; all paths are absolute. */
export interface ModelDefinition {
  /** FROM: an alias, a hub spec, a created model, or an absolute path. */
  readonly from: string;
  readonly settings: ModelSettings;
  readonly adapters: readonly {
    readonly path: string;
    readonly scale: number;
    /** Absent: named after its file. */
    readonly name?: string;
  }[];
  readonly projector: string | undefined;
  readonly draft?: string | undefined;
  /** SHA-256 of the base's GGUF file, 64 lowercase hexadecimal digits. */
  readonly digest: string | undefined;
  readonly license: string | undefined;
  readonly author: string | undefined;
  readonly unused: readonly UnusedDirective[];
}

/** Directives that may be repeated with the same key, or without one. */
const REPEATABLE = new Set(["ADAPTER", "LICENSE", `PARAMETER ${REPEATABLE_PARAMETER}`]);

type Adapter = ModelDefinition["adapters"][number];

/**
 * Reads a Modelfile. Relative paths start at `baseFolder`, and are an error without one. The registry checks that paths
 * exist and are allowed.
 * @throws ServiceError invalid_modelfile with the line
 */
export function readModelfile(text: string, baseFolder: string | undefined): ModelDefinition {
  const instructions = parseInstructions(text);
  checkRepeats(instructions);
  const one = (directive: Instruction["directive"]): Instruction | undefined =>
    instructions.find((instruction) => instruction.directive === directive);
  const all = (directive: Instruction["directive"]): Instruction[] =>
    instructions.filter((instruction) => instruction.directive === directive);

  const from = one("FROM");
  if (!from) throw modelfileError(1, "it needs FROM, which names the base model.");
  const fileOf = (instruction: Instruction | undefined): string | undefined =>
    instruction && readPath(instruction, pathOf(instruction, instruction.text), baseFolder);
  const digest = one("DIGEST");
  const adapters = all("ADAPTER").map((adapter) => readAdapter(adapter, baseFolder));
  if (adapters.length > MAX_ADAPTERS) {
    throw modelfileError(from.line, `there are more than ${MAX_ADAPTERS} adapters.`);
  }
  const names = adapters.flatMap(({ name }) => name ?? []);
  if (new Set(names).size < names.length) throw modelfileError(from.line, "two adapters have the same name.");
  return {
    from: readFrom(from, baseFolder),
    settings: readSettings(instructions),
    adapters,
    projector: fileOf(one("VISION_PROJECTOR")),
    draft: fileOf(one("DRAFT")),
    digest: digest && readDigest(digest),
    license: licenseText(instructions),
    author: one("AUTHOR")?.text,
    unused: unusedDirectives(instructions),
  };
}

/** Returns the files that a definition names; of a sharded model, only the named shard. */
export function filesOf({ from, adapters, projector }: ModelDefinition): string[] {
  const all = [nodePath.isAbsolute(from) ? from : undefined, ...adapters.map(({ path }) => path), projector];
  return all.filter((file) => file !== undefined);
}

function checkRepeats(instructions: readonly Instruction[]): void {
  const first = new Map<string, number>();
  for (const instruction of instructions) {
    const { line, directive, key } = instruction;
    if (directive === "MESSAGE" || isUnused(instruction)) continue;
    const name = key === "" ? directive : `${directive} ${key}`;
    const earlier = first.get(name);
    if (earlier !== undefined && !REPEATABLE.has(name)) {
      throw modelfileError(line, `${name} is already set in line ${earlier}.`);
    }
    first.set(name, line);
  }
}

function readFrom(instruction: Instruction, baseFolder: string | undefined): string {
  const from = pathOf(instruction, instruction.text);
  if (from.startsWith(HUB_PREFIX)) {
    withLine(instruction, () => parseHubSpec(from));
    return from;
  }
  if (looksLikePath(from)) return readPath(instruction, from, baseFolder);
  const { name, revision } = splitRevision(from);
  if (isModelName(name) && (revision === undefined || isRevision(revision))) return from;
  throw modelfileError(
    instruction.line,
    `FROM ${JSON.stringify(from.slice(0, 100))} is not the name of a model, a hub spec (hf:owner/repository) or the path of a .gguf file.`,
  );
}

/** Reads `ADAPTER path [scale] [AS name]`, whose path ends at .gguf. */
function readAdapter(instruction: Instruction, baseFolder: string | undefined): Adapter {
  const parts = /^(.*?\.gguf"?)(?:\s+([^\s"]+?))??(?:\s+AS\s+([^\s"]+))?$/is.exec(instruction.text);
  const [written = instruction.text, number = "1", name] = parts?.slice(1) ?? [];
  const scale = parseDecimal(number);
  if (scale === undefined || Math.abs(scale) > MAX_ADAPTER_SCALE) {
    throw modelfileError(
      instruction.line,
      `the scale of an adapter must be a number from -${MAX_ADAPTER_SCALE} to ${MAX_ADAPTER_SCALE}.`,
    );
  }
  if (name !== undefined && !isPlainPart(name)) {
    throw modelfileError(
      instruction.line,
      "the name of an adapter must consist of letters, digits, dots, dashes and underscores.",
    );
  }
  const absolutePath = readPath(instruction, pathOf(instruction, written), baseFolder);
  return { path: absolutePath, scale, ...(name !== undefined && { name }) };
}

/** Returns a path without quotes around it. */
function pathOf({ line, directive }: Instruction, written: string): string {
  const absolutePath = unquotePath(written);
  if (absolutePath.startsWith('"')) throw modelfileError(line, `${directive}: a quote is not closed.`);
  return absolutePath;
}

function readPath(instruction: Instruction, written: string, baseFolder: string | undefined): string {
  if (/^[A-Za-z][A-Za-z0-9+.-]+:\/\//.test(written)) {
    throw modelfileError(
      instruction.line,
      `${instruction.directive} takes a path on this machine, not a URL.`,
    );
  }
  const absolutePath = withLine(instruction, () => parseFilePath(written));
  if (nodePath.isAbsolute(absolutePath)) return nodePath.resolve(absolutePath);
  if (baseFolder !== undefined) return nodePath.resolve(baseFolder, absolutePath);
  throw modelfileError(
    instruction.line,
    `${JSON.stringify(written)} is relative, but this Modelfile comes without a folder; use an absolute path.`,
  );
}

/** Adds the line number to an error about a name. */
function withLine<T>(instruction: Instruction, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw modelfileError(instruction.line, `${instruction.directive} ${error.message}`, error);
  }
}

function readDigest({ line, text }: Instruction): string {
  const digest = /^sha256:([0-9a-f]{64})$/i.exec(text)?.[1];
  if (digest === undefined)
    throw modelfileError(line, "DIGEST must be sha256: followed by 64 hexadecimal digits.");
  return digest.toLowerCase();
}

/** Prints a Modelfile with absolute paths that parses back to the same definition. */
export function printModelfile(definition: ModelDefinition): string {
  const { from, settings, adapters, projector, draft, digest, license, author, unused } = definition;
  const lines = [
    `FROM ${from}`,
    ...optionalLine("DIGEST", digest && `sha256:${digest}`),
    ...adapters.map(
      ({ path, scale, name }) =>
        `ADAPTER ${path}${scale === 1 ? "" : ` ${scale}`}${name === undefined ? "" : ` AS ${name}`}`,
    ),
    ...optionalLine("VISION_PROJECTOR", projector),
    ...optionalLine("DRAFT", draft),
    ...optionalLine("GPU_LAYERS", settings.gpuLayers),
    ...optionalLine("FLASH_ATTENTION", settings.load.flashAttention),
    ...listParameters(settings).map(
      ([name, value]) => `PARAMETER ${name} ${typeof value === "string" ? quote(value) : value}`,
    ),
    ...optionalQuoted("SYSTEM", settings.system),
    ...optionalQuoted("TEMPLATE", settings.template),
    ...printThinking(settings.thinking),
    ...printToolFormat(settings.toolFormat),
    ...Object.entries(settings.capabilities).map(([name, flag]) => `CAPABILITY ${name} ${flag}`),
    ...(settings.messages ?? []).map(({ role, content }) => `MESSAGE ${role} ${quote(content)}`),
    ...unused.map(printUnused),
    ...optionalQuoted("AUTHOR", author),
    ...optionalQuoted("LICENSE", license),
  ];
  return `${lines.join("\n")}\n`;
}

function optionalLine(directive: string, value: string | number | undefined): string[] {
  return value === undefined ? [] : [`${directive} ${value}`];
}

function optionalQuoted(directive: string, value: string | undefined): string[] {
  return value === undefined ? [] : [`${directive} ${quote(value)}`];
}

function printUnused({ directive, key, text: value }: UnusedDirective): string {
  const name = key === "" ? directive : `${directive} ${key}`;
  return `${name} ${/^[\w.+-]+$/.test(value) ? value : quote(value)}`;
}

function printThinking(thinking: ModelSettings["thinking"]): string[] {
  if (!thinking) return [];
  const { start, end, enabled } = thinking;
  return [`THINKING start ${quote(start)}`, `THINKING end ${quote(end)}`, `THINKING enabled ${enabled}`];
}

function printToolFormat(format: ModelSettings["toolFormat"]): string[] {
  if (!format) return [];
  return [
    ...optionalQuoted("TOOLFORMAT style", format.style),
    ...optionalQuoted("TOOLFORMAT call_start", format.callStart),
    ...optionalQuoted("TOOLFORMAT call_end", format.callEnd),
    ...optionalQuoted("TOOLFORMAT result_start", format.resultStart),
    ...optionalQuoted("TOOLFORMAT result_end", format.resultEnd),
  ];
}
