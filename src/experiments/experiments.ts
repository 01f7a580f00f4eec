import { z } from "zod";
import {
  type AnswerToken,
  experimentRequestSchema,
  type ExperimentResult,
  experimentResultSchema,
} from "../api/wire/native.ts";
import { ServiceError } from "../errors/service-error.ts";

/** Version of the format. */
const VERSION = 1;

const fileSchema = z.strictObject({
  role: z.enum(["model", "projector", "adapter"]),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits"),
  scale: z.number().optional().describe("Of an adapter: how strongly it takes effect."),
});
export type ExperimentModelFile = z.output<typeof fileSchema>;

/** A reproducible request to a model, with its result. */
const experimentSchema = z
  .strictObject({
    $schema: z.string().optional(),
    experiment: z.literal(VERSION).describe("Version of this format."),
    title: z.string().optional(),
    notes: z.string().optional(),
    model: z.strictObject({
      name: z.string().min(1).describe("Its name where the experiment was recorded."),
      source: z.string().optional().describe("Where to pull it from, such as hf:owner/repository:Q4_K_M."),
      files: z.array(fileSchema).optional().describe("Its files. A model with others is another model."),
    }),
    request: experimentRequestSchema,
    result: experimentResultSchema.optional().describe("What was generated when it was recorded."),
  })
  .meta({ id: "Experiment", title: "Daybreak experiment" });
export type Experiment = z.output<typeof experimentSchema>;

/** Selects what an experiment records of a model's files. */
export function experimentFiles(files: readonly ExperimentModelFile[]): ExperimentModelFile[] {
  return files.map(({ role, sha256, scale }) =>
    scale === undefined ? { role, sha256 } : { role, sha256, scale },
  );
}

/** The published JSON Schema of the format. */
export function experimentJsonSchema(): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(experimentSchema, { io: "input" });
}

/**
 * Parses an experiment file.
 * @throws ServiceError invalid_parameter that names the first invalid field
 */
export function parseExperiment(text: string): Experiment {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw invalidExperiment("it is not JSON", error);
  }
  const { data, error } = experimentSchema.safeParse(value);
  if (data) return data;
  const [issue] = error.issues;
  const prefix = issue && issue.path.length > 0 ? `${issue.path.join(".")}: ` : "";
  throw invalidExperiment(`${prefix}${issue?.message ?? "it has another format"}`, error);
}

function invalidExperiment(why: string, cause: unknown): ServiceError {
  return new ServiceError("invalid_parameter", `This is not an experiment: ${why}.`, { cause });
}

/** Placeholder of the tokens, which are not indented like the rest. */
const TOKENS_PLACEHOLDER = "\u0000tokens";

/** Formats an experiment file: indented, with one line per token. */
export function printExperiment(experiment: Experiment): string {
  const { result } = experiment;
  if (!result) return `${JSON.stringify(experiment, undefined, 2)}\n`;
  const text = JSON.stringify(
    { ...experiment, result: { ...result, tokens: TOKENS_PLACEHOLDER } },
    undefined,
    2,
  );
  return `${text.replace(JSON.stringify(TOKENS_PLACEHOLDER), () => tokenLines(result.tokens))}\n`;
}

function tokenLines(tokens: readonly AnswerToken[]): string {
  if (tokens.length === 0) return "[]";
  return `[\n      ${tokens.map((token) => JSON.stringify(token)).join(",\n      ")}\n    ]`;
}

/** Maximum size of an experiment in a link, in bytes. A few thousand tokens with alternatives take about 1 MiB. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Encodes an experiment as a URL fragment: its file, compressed with deflate, in base64url. Fragments are not sent to
 * servers.
 */
export async function toFragment(experiment: Experiment): Promise<string> {
  const stream = new Blob([printExperiment(experiment)])
    .stream()
    .pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const binary = Array.from(bytes, (byte) => String.fromCodePoint(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/**
 * Decodes the experiment in a URL fragment.
 * @throws ServiceError invalid_parameter
 */
export async function fromFragment(fragment: string): Promise<Experiment> {
  return parseExperiment(await inflate(fragment));
}

async function inflate(fragment: string): Promise<string> {
  try {
    const binary = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.codePointAt(0) ?? 0);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return await decodeText(stream);
  } catch (error) {
    throw new ServiceError(
      "invalid_parameter",
      "This link does not contain an experiment: it was cut or changed. Ask for the experiment's file instead.",
      { cause: error },
    );
  }
}

async function decodeText(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let size = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > MAX_BYTES) {
      await reader.cancel();
      throw new RangeError(`more than ${MAX_BYTES} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** Comparison of two results of an experiment. */
export interface Comparison {
  /** True if tokens, text, tool calls and finish reason are equal. */
  readonly isSame: boolean;
  /** Number of equal tokens at the beginning. */
  readonly sameTokens: number;
  /** The first tokens that differ. One is undefined if that answer is shorter. */
  readonly left: AnswerToken | undefined;
  readonly right: AnswerToken | undefined;
  /** Maximum difference between log-probabilities of equal tokens, including alternatives. */
  readonly logprobDifference: number;
}

/** Compares the generated output of two results. Ignores timings and machines. */
export function compareResults(left: ExperimentResult, right: ExperimentResult): Comparison {
  const shorter = Math.min(left.tokens.length, right.tokens.length);
  let sameTokens = 0;
  while (sameTokens < shorter && left.tokens[sameTokens]?.id === right.tokens[sameTokens]?.id)
    sameTokens += 1;
  const pairs = left.tokens.slice(0, sameTokens).map((token, at) => [token, right.tokens[at]] as const);
  const isSame =
    sameTokens === Math.max(left.tokens.length, right.tokens.length) && outcomeOf(left) === outcomeOf(right);
  return {
    isSame,
    sameTokens,
    left: left.tokens[sameTokens],
    right: right.tokens[sameTokens],
    logprobDifference: Math.max(
      0,
      ...pairs.map(([one, other]) => (other ? maxLogprobDifference(one, other) : 0)),
    ),
  };
}

/** Describes how far the log-probabilities of two results differ. */
export function describeDifference({ logprobDifference }: Comparison): string {
  return logprobDifference === 0
    ? "log-probabilities equal to the last bit"
    : `log-probabilities differ by at most ${logprobDifference.toPrecision(3)}`;
}

/** Returns all output besides the tokens, without the random IDs of tool calls. */
function outcomeOf({
  text,
  thinking,
  tool_calls: calls,
  done_reason: reason,
  completion_tokens,
}: ExperimentResult): string {
  return JSON.stringify([text, thinking, calls?.map((call) => call.function), reason, completion_tokens]);
}

function maxLogprobDifference(one: AnswerToken, other: AnswerToken): number {
  const logprobs = new Map(other.top.map(({ id, logprob }) => [id, logprob]));
  const alternatives = one.top.map(({ id, logprob }) => Math.abs(logprob - (logprobs.get(id) ?? logprob)));
  return Math.max(Math.abs(one.logprob - other.logprob), ...alternatives);
}
