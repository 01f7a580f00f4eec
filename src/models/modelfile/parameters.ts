import { z } from "zod";
import { readNumber } from "../../config/config-values.ts";
import {
  LOAD_SETTINGS,
  type LoadSetting,
  type LoadSettings,
  loadSettingsSchema,
} from "../../config/load-settings.ts";
import { type Sampling, samplingSchema } from "../../engine/protocol/generation.ts";
import { SAMPLING_ENTRIES, type SamplingKey } from "../../engine/protocol/sampling-fields.ts";
import { explainIssue, IN_WORDS, issueText } from "../../errors/explain-issue.ts";
import { type ModelSettings, type Speculation, SPECULATIONS } from "../model.ts";
import { type Instruction, parseInstructions } from "./parse-instructions.ts";

/** Smallest context that an engine can be started with. */
const MIN_CONTEXT = 16;
/** No model is trained for more tokens than this; a larger number is a mistake. */
const MAX_CONTEXT = 16 * 1024 * 1024;
const MAX_STOP_SEQUENCES = 64;

/** Sampling parameters by their names; the ranges are the engine's own. */
const SAMPLING: ReadonlyMap<string, SamplingKey> = new Map(
  SAMPLING_ENTRIES.flatMap(([key, { name, isParameter }]) => (isParameter ? [[name, key]] : [])),
);

/** How a model is loaded. Flash attention has a directive of its own, and steps have the name that Ollama gives them. */
const LOAD: ReadonlyMap<string, LoadSetting> = new Map(
  [...LOAD_SETTINGS].flatMap(([name, field]): [string, LoadSetting][] => {
    if (field === "flashAttention") return [];
    return [[field === "batchSize" ? "num_batch" : name, field]];
  }),
);

const SWITCH: ReadonlyMap<string, boolean> = new Map([
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
  ...SAMPLING.keys(),
  "num_ctx",
  "num_predict",
  "repetition_guard",
  "speculation",
  "stop",
  ...LOAD.keys(),
]);

/** The parameter that may be given more than once. */
export const REPEATABLE_PARAMETER = "stop";

/** Whether a parameter is known here. */
export function isKnownParameter(name: string): boolean {
  return PARAMETER_NAMES.has(name);
}

/** Whether a number says that nothing is set: no limit, or a new seed for each request. */
function meansDefault(name: string, number: number): boolean {
  return (name === "num_predict" && number < 1) || (name === "seed" && number < 0);
}

/**
 * Sets one parameter that is known here.
 * @returns what is wrong with it, without a final period
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
    const isOn = SWITCH.get(value.toLowerCase());
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
  const loadField = LOAD.get(name);
  if (loadField) return setLoadParameter(settings, loadField, value);
  const field = SAMPLING.get(name);
  const number = readNumber(value);
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
    schema instanceof z.ZodBoolean ? SWITCH.get(text) : schema instanceof z.ZodEnum ? text : readNumber(text);
  const problem = problemOf(schema, read ?? value);
  if (problem === undefined) settings.load = loadSettingsSchema.parse({ ...settings.load, [field]: read });
  return problem;
}

/** What a schema says against a value. */
function problemOf(schema: z.ZodType, value: unknown): string | undefined {
  const result = schema.safeParse(value, IN_WORDS);
  if (result.success) return undefined;
  const [issue] = result.error.issues;
  return issue ? `it ${issueText(explainIssue(issue, value))}` : "it is out of range";
}

/** The parameters as name and value, in a fixed order. */
export function listParameters(settings: ParameterSettings): [name: string, value: string | number][] {
  const { sampling, contextSize, maxTokens, repetitionGuard, speculation, stop, load } = settings;
  const listed: [string, string | number | undefined][] = [
    ...[...SAMPLING].map(([name, field]): [string, number | undefined] => [
      name,
      sampling[field] === undefined ? undefined : Number(sampling[field]),
    ]),
    ["num_ctx", contextSize],
    ["num_predict", maxTokens],
    ["repetition_guard", repetitionGuard === undefined ? undefined : Number(repetitionGuard)],
    ["speculation", speculation],
    ...[...LOAD].map(([name, field]): [string, string | number | undefined] => {
      const value = load[field];
      return [name, typeof value === "boolean" ? Number(value) : value];
    }),
    ...stop.map((text): [string, string] => ["stop", text]),
  ];
  return listed.flatMap(([name, value]): [string, string | number][] =>
    value === undefined ? [] : [[name, value]],
  );
}

/** Directives of Ollama that have no effect here, and why. */
const OF_OLLAMA = {
  RENDERER: "names code of Ollama; here the chat template writes prompts",
  PARSER: "names code of Ollama; here reasoning and tool calls are found by the marks in the chat template",
  REQUIRES: "is a version of Ollama",
} as const;

/** PARAMETERs of Ollama whose work something else does here. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ["num_gpu", "has no effect here; GPU_LAYERS says how many layers are on the GPU"],
  [
    "num_thread",
    "has no effect here; engine.threads of the configuration says how many threads an engine has",
  ],
]);

/** A directive that is kept, so that it is not lost for others, and has no effect. */
export interface UnusedDirective extends Pick<Instruction, "key" | "text"> {
  readonly directive: keyof typeof OF_OLLAMA | "PARAMETER";
}

/** Longest value that a note repeats. */
const SHOWN_LENGTH = 40;
/** Nobody reads more of them. */
const MAX_NOTES = 20;

/** Whether a directive has no effect here. */
export function isUnused(instruction: Instruction): boolean {
  return toUnused(instruction) !== undefined;
}

/** The directives that have no effect here, as they were written. */
export function unusedDirectives(instructions: readonly Instruction[]): UnusedDirective[] {
  return instructions.map(toUnused).filter((unused) => unused !== undefined);
}

/** What in a Modelfile has no effect here, in sentences for its author. */
export function modelfileNotes(modelfile: string): string[] {
  const notes = new Set(unusedDirectives(parseInstructions(modelfile)).map(noteOn));
  const told = [...notes].slice(0, MAX_NOTES);
  return notes.size > told.length ? [...told, `And ${notes.size - told.length} more.`] : told;
}

function toUnused({ directive, key, text }: Instruction): UnusedDirective | undefined {
  if (directive === "RENDERER" || directive === "PARSER" || directive === "REQUIRES") {
    return { directive, key, text };
  }
  return directive === "PARAMETER" && !isKnownParameter(key) ? { directive, key, text } : undefined;
}

function noteOn({ directive, key, text }: UnusedDirective): string {
  if (directive === "PARAMETER") {
    return `PARAMETER ${key.slice(0, SHOWN_LENGTH)} ${ELSEWHERE.get(key) ?? "is not known here and has no effect"}.`;
  }
  const shown = text.split("\n", 1)[0]?.slice(0, SHOWN_LENGTH);
  return `${directive} ${shown} has no effect: it ${OF_OLLAMA[directive]}.`;
}
