import { z } from "zod";
import type { TokenLogprob } from "../../engine/protocol/generation.ts";
import { sseData } from "../../http/streaming/stream-response.ts";
import type { Answer } from "../../inference/collect-answer.ts";
import type { ChoiceEvent } from "../../inference/generate-choices.ts";
import { answerTimings, eventTimings, toPromptProgress } from "../answer-fields.ts";
import { promptProgressSchema, timingsSchema } from "../wire/answer-fields.ts";

const tokenFields = {
  id: z.int(),
  token: z.string(),
  bytes: z.array(z.int()),
  logprob: z.number().describe("Natural logarithm of the probability before sampling."),
};
const probabilitiesField = z
  .array(z.object({ ...tokenFields, top_logprobs: z.array(z.object(tokenFields)) }))
  .optional()
  .describe("With n_probs or logprobs.");
type Probabilities = NonNullable<z.output<typeof probabilitiesField>>;

const sharedFields = {
  index: z.int().describe("Index of the prompt and completion, if there are several."),
  content: z.string(),
  tokens: z.array(z.int()).describe("With return_tokens."),
  id_slot: z.int().describe("Slot that answered; -1 while unknown."),
  tokens_predicted: z.int().describe("Tokens generated."),
  tokens_evaluated: z.int().describe("Tokens in the prompt."),
  completion_probabilities: probabilitiesField,
};

export const completionSchema = z
  .object({
    ...sharedFields,
    stop: z.literal(true),
    model: z.string(),
    generation_settings: z.record(z.string(), z.unknown()),
    prompt: z.string().describe("Prompt as the model received it."),
    has_new_line: z.boolean(),
    truncated: z.boolean().describe("The context was full before the answer ended."),
    stop_type: z.enum(["eos", "limit", "word"]),
    stopping_word: z.string().describe("Stop sequence that ended the answer, or empty."),
    tokens_cached: z.int().describe("Tokens in the slot's KV cache."),
    timings: timingsSchema,
  })
  .meta({ id: "LlamaServerCompletion" });
type Completion = z.output<typeof completionSchema>;

export const completionChunkSchema = z
  .union([
    z.object({
      ...sharedFields,
      stop: z.literal(false),
      prompt_progress: promptProgressSchema.optional().describe("If the request has return_progress."),
      timings: timingsSchema.optional().describe("With timings_per_token."),
    }),
    completionSchema,
  ])
  .meta({ id: "LlamaServerCompletionChunk" });
type Chunk = Extract<z.output<typeof completionChunkSchema>, { stop: false }>;

/** Options for the format of an answer. */
export interface CompletionOptions {
  readonly model: string;
  readonly settings: Readonly<Record<string, unknown>>;
  /** Include token IDs. */
  readonly tokens: boolean;
  readonly probabilities: boolean;
  readonly progress: boolean;
  /** The request asks for no text: the generated token is not returned. */
  readonly promptOnly: boolean;
  /** Fields to return; undefined or empty: all. */
  readonly fields: readonly string[] | undefined;
}

/** A complete answer, or the end of a streamed one, without text. */
type AnswerEnd = Pick<Answer, "reason" | "limitedBy" | "usage" | "timings" | "details"> & {
  readonly text: string;
  readonly stopSequence?: string | undefined;
  readonly hasNewLine: boolean;
  readonly logprobs: readonly TokenLogprob[];
};

export function toCompletion(answer: Answer, index: number, options: CompletionOptions): object {
  const text = options.promptOnly ? "" : answer.text;
  return selectFields(
    finalCompletion({ ...answer, text, hasNewLine: text.includes("\n") }, index, options),
    options.fields,
  );
}

function finalCompletion(answer: AnswerEnd, index: number, options: CompletionOptions): Completion {
  const { details, usage, stopSequence = "" } = answer;
  const logprobs = options.promptOnly ? [] : answer.logprobs;
  const generated = options.promptOnly ? 0 : usage.completionTokens;
  return {
    index,
    content: answer.text,
    tokens: options.tokens ? logprobs.map(({ id }) => id) : [],
    id_slot: details?.slot ?? -1,
    stop: true,
    model: options.model,
    tokens_predicted: generated,
    tokens_evaluated: usage.promptTokens,
    generation_settings: options.settings,
    prompt: details?.prompt ?? "",
    has_new_line: answer.hasNewLine,
    truncated: details?.truncated === true || answer.limitedBy === "context",
    stop_type: stopSequence !== "" ? "word" : answer.reason === "length" ? "limit" : "eos",
    stopping_word: stopSequence,
    tokens_cached: details?.tokensInCache ?? usage.promptTokens + generated,
    timings: answerTimings(usage, answer.timings),
    ...(options.probabilities && { completion_probabilities: toProbabilities(logprobs) }),
  };
}

type Token = Probabilities[number]["top_logprobs"][number];

function toProbabilities(logprobs: readonly TokenLogprob[]): Probabilities {
  return logprobs.map((token) => ({
    ...tokenWithoutTop(token),
    top_logprobs: token.top.map(tokenWithoutTop),
  }));
}

function tokenWithoutTop({ id, token, bytes, logprob }: Omit<TokenLogprob, "top">): Token {
  return { id, token, bytes: bytes ?? [...new TextEncoder().encode(token)], logprob };
}

/** Yields the events of a streamed answer. The last event of each choice has all fields except its text. */
export async function* toCompletionChunks(
  events: AsyncIterable<ChoiceEvent>,
  options: CompletionOptions,
): AsyncGenerator<string, void, undefined> {
  const states = new Map<number, { tokens: number; prompt: number; hasNewLine: boolean }>();
  for await (const event of events) {
    const index = event.choice ?? 0;
    const state = states.get(index) ?? { tokens: 0, prompt: 0, hasNewLine: false };
    states.set(index, state);
    const chunk = (fields: Partial<Chunk>): string =>
      sseData({
        index,
        content: "",
        tokens: [],
        stop: false,
        id_slot: -1,
        tokens_predicted: state.tokens,
        tokens_evaluated: state.prompt,
        ...fields,
      } satisfies Chunk);
    if (event.type === "prompt-progress") {
      state.prompt = event.total;
      if (options.progress) yield chunk({ prompt_progress: toPromptProgress(event) });
    } else if (event.type === "text-delta" && !options.promptOnly) {
      const { text, logprobs = [] } = event;
      state.tokens += Math.max(1, logprobs.length);
      state.hasNewLine ||= text.includes("\n");
      const tokens = options.tokens ? logprobs.map(({ id }) => id) : [];
      const probabilities = options.probabilities && { completion_probabilities: toProbabilities(logprobs) };
      const timings = eventTimings(event);
      yield chunk({ content: text, tokens, ...probabilities, ...(timings && { timings }) });
    } else if (event.type === "done") {
      const { hasNewLine } = state;
      const completion = finalCompletion({ ...event, text: "", hasNewLine, logprobs: [] }, index, options);
      delete completion.completion_probabilities;
      yield sseData(selectFields(completion, options.fields));
    }
  }
}

/**
 * Returns the named fields of an answer. The name of a nested field is a path such as "timings/prompt_n", also in the
 * result. Unknown names are ignored.
 * @param names undefined or empty: all fields
 */
function selectFields(answer: object, names: readonly string[] | undefined): object {
  if (names === undefined || names.length === 0) return answer;
  const found = names.map((name): [string, unknown] => [name, valueAt(answer, name.split("/"))]);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

function valueAt(answer: object, keys: readonly string[]): unknown {
  let value: unknown = answer;
  for (const key of keys) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = Reflect.get(value, key);
  }
  return value;
}
