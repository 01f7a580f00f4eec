import { z } from "zod";
import { parseDecimal } from "../../config/config-values.ts";
import {
  LOAD_SETTINGS,
  type LoadSetting,
  type LoadSettings,
  loadSettingsSchema,
} from "../../config/load-settings.ts";
import { type Sampling, samplingSchema } from "../../engine/protocol/generation.ts";
import { SAMPLING_ENTRIES, type SamplingKey } from "../../engine/protocol/sampling-fields.ts";
import { explainIssue, EXPLAINABLE, issueText } from "../../errors/explain-issue.ts";
import { type ModelSettings, type Speculation, SPECULATIONS } from "../model.ts";
import { type Instruction, parseInstructions } from "./parse-instructions.ts";

/** Minimum context of an engine. */
const MIN_CONTEXT = 16;
/** Maximum context and tokens per answer; no model is trained for more. */
const MAX_CONTEXT = 16 * 1024 * 1024;
const MAX_STOP_SEQUENCES = 64;

/** Sampling parameters by name; their ranges are those of the engine. */
const SAMPLING_PARAMETERS: ReadonlyMap<string, SamplingKey> = new Map(
  SAMPLING_ENTRIES.flatMap(([key, { name, isForRequests }]) => (isForRequests ? [] : [[name, key]])),
);

/** Load settings by name. Flash attention has its own directive, and the batch size has Ollama's name. */
const LOAD_PARAMETERS: ReadonlyMap<string, LoadSetting> = new Map(
  [...LOAD_SETTINGS].flatMap(([name, field]): [string, LoadSetting][] => {
    if (field === "flashAttention") return [];
    return [[field === "batchSize" ? "num_batch" : name, field]];
  }),
);

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);

const contextSchema = z.int().min(MIN_CONTEXT).max(MAX_CONTEXT);
const speculationSchema = z.enum(SPECULATIONS);
const maxTokensSchema = z.int().min(1).max(MAX_CONTEXT);

type ParameterSettings = Pick<
  ModelSettings,
  "sampling" | "stop" | "contextSize" | "maxTokens" | "repetitionGuard" | "load" | "speculation"
>;
export type MutableParameters = {
  sampling: { -readonly [Key in keyof Sampling]: Sampling[Key] };
  stop: string[];
  contextSize: number | undefined;
  maxTokens: number | undefined;
  repetitionGuard?: boolean;
  speculation?: Speculation;
  load: LoadSettings;
};

const PARAMETER_NAMES: ReadonlySet<string> = new Set([
  ...SAMPLING_PARAMETERS.keys(),
  "num_ctx",
  "num_predict",
  "repetition_guard",
  "speculation",
  "stop",
  ...LOAD_PARAMETERS.keys(),
]);

/** Parameter that may be set more than once. */
export const REPEATABLE_PARAMETER = "stop";

/** True for a parameter that Daybreak supports. */
export function isKnownParameter(name: string): boolean {
  return PARAMETER_NAMES.has(name);
}

/** True for a number that means the default: no limit, or a new seed for each request. */
function meansDefault(name: string, number: number): boolean {
  return (name === "num_predict" && number < 1) || (name === "seed" && number < 0);
}

/**
 * Sets a known parameter.
 * @returns an error message without a final period; undefined if the value is valid
 */
export function setParameter(settings: MutableParameters, name: string, value: string): string | undefined {
  if (name === "stop") {
    if (value === "") return "a stop sequence must not be empty";
    if (settings.stop.length >= MAX_STOP_SEQUENCES)
      return `there are more than ${MAX_STOP_SEQUENCES} stop sequences`;
    settings.stop.push(value);
    return undefined;
  }
  if (name === "repetition_guard") {
    const isOn = BOOLEANS.get(value.toLowerCase());
    if (isOn === undefined) return `${JSON.stringify(value)} is neither true nor false`;
    settings.repetitionGuard = isOn;
    return undefined;
  }
  if (name === "speculation") {
    const text = value.toLowerCase();
    const problem = problemOf(speculationSchema, text);
    if (problem === undefined) settings.speculation = speculationSchema.parse(text);
    return problem;
  }
  const loadField = LOAD_PARAMETERS.get(name);
  if (loadField) return setLoadParameter(settings, loadField, value);
  const field = SAMPLING_PARAMETERS.get(name);
  const number = parseDecimal(value);
  if (number === undefined) return `${JSON.stringify(value)} is not a number; comments need their own line`;
  if (meansDefault(name, number)) return undefined;
  const schema = field ? samplingSchema.shape[field] : name === "num_ctx" ? contextSchema : maxTokensSchema;
  const problem = problemOf(schema, number);
  if (problem !== undefined) return problem;
  if (field) settings.sampling = { ...settings.sampling, [field]: number };
  else if (name === "num_ctx") settings.contextSize = number;
  else settings.maxTokens = number;
  return undefined;
}

function setLoadParameter(
  settings: MutableParameters,
  field: LoadSetting,
  value: string,
): string | undefined {
  const text = value.toLowerCase();
  const schema = loadSettingsSchema.shape[field].unwrap();
  const read =
    schema instanceof z.ZodBoolean
      ? BOOLEANS.get(text)
      : schema instanceof z.ZodEnum
        ? text
        : parseDecimal(text);
  const problem = problemOf(schema, read ?? value);
  if (problem === undefined) settings.load = loadSettingsSchema.parse({ ...settings.load, [field]: read });
  return problem;
}

/** Returns why a schema rejects a value; undefined if it is valid. */
function problemOf(schema: z.ZodType, value: unknown): string | undefined {
  const result = schema.safeParse(value, EXPLAINABLE);
  if (result.success) return undefined;
  const [issue] = result.error.issues;
  return issue ? `it ${issueText(explainIssue(issue, value))}` : "it is out of range";
}

/** Returns the parameters as name and value, in a fixed order. */
export function listParameters(settings: ParameterSettings): [name: string, value: string | number][] {
  const { sampling, contextSize, maxTokens, repetitionGuard, speculation, stop, load } = settings;
  const listed: [string, string | number | boolean | undefined][] = [
    ...[...SAMPLING_PARAMETERS].map(([name, field]): [string, number | undefined] => [
      name,
      sampling[field] === undefined ? undefined : Number(sampling[field]),
    ]),
    ["num_ctx", contextSize],
    ["num_predict", maxTokens],
    ["repetition_guard", repetitionGuard],
    ["speculation", speculation],
    ...[...LOAD_PARAMETERS].map(([name, field]): (typeof listed)[number] => [name, load[field]]),
    ...stop.map((text): [string, string] => ["stop", text]),
  ];
  return listed.flatMap(([name, value]): [string, string | number][] =>
    value === undefined ? [] : [[name, typeof value === "boolean" ? Number(value) : value]],
  );
}

/** Directives of Ollama without an effect in Daybreak, with the reason. */
const OLLAMA_DIRECTIVES = {
  RENDERER: "names code of Ollama; here the chat template writes prompts",
  PARSER: "names code of Ollama; here reasoning and tool calls are found by the marks in the chat template",
  REQUIRES: "is a version of Ollama",
} as const;

/** Parameters of Ollama that other settings replace in Daybreak. */
const OLLAMA_PARAMETERS: ReadonlyMap<string, string> = new Map([
  ["num_gpu", "has no effect here; GPU_LAYERS says how many layers are on the GPU"],
  [
    "num_thread",
    "has no effect here; engine.threads of the configuration says how many threads an engine has",
  ],
]);

/** A directive without an effect, which is stored so that printed Modelfiles have it. */
export interface UnusedDirective extends Pick<Instruction, "key" | "text"> {
  readonly directive: keyof typeof OLLAMA_DIRECTIVES | "PARAMETER";
}

/** Maximum characters of a value in a note. */
const MAX_QUOTED_LENGTH = 40;
/** Maximum notes on a Modelfile. */
const MAX_NOTES = 20;

/** True for a directive without an effect. */
export function isUnused(instruction: Instruction): boolean {
  return toUnused(instruction) !== undefined;
}

/** Returns the directives without an effect, as written. */
export function unusedDirectives(instructions: readonly Instruction[]): UnusedDirective[] {
  return instructions.map(toUnused).filter((unused) => unused !== undefined);
}

/** Returns sentences for the author about the directives of a Modelfile without an effect. */
export function modelfileNotes(modelfile: string): string[] {
  const notes = new Set(unusedDirectives(parseInstructions(modelfile)).map(noteOn));
  const listedNotes = [...notes].slice(0, MAX_NOTES);
  return notes.size > listedNotes.length
    ? [...listedNotes, `And ${notes.size - listedNotes.length} more.`]
    : listedNotes;
}

function toUnused({ directive, key, text }: Instruction): UnusedDirective | undefined {
  if (directive === "RENDERER" || directive === "PARSER" || directive === "REQUIRES") {
    return { directive, key, text };
  }
  return directive === "PARAMETER" && !isKnownParameter(key) ? { directive, key, text } : undefined;
}

function noteOn({ directive, key, text }: UnusedDirective): string {
  if (directive === "PARAMETER") {
    return `PARAMETER ${key.slice(0, MAX_QUOTED_LENGTH)} ${OLLAMA_PARAMETERS.get(key) ?? "is not known here and has no effect"}.`;
  }
  const quotedText = text.split("\n", 1)[0]?.slice(0, MAX_QUOTED_LENGTH);
  return `${directive} ${quotedText} has no effect: it ${OLLAMA_DIRECTIVES[directive]}.`;
}
