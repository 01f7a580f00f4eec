import { z } from "zod";
import type { TokenLogprob } from "../../engine/protocol/generation.ts";
import { sseData } from "../../http/streaming/stream-response.ts";
import type { Answer } from "../../inference/collect-answer.ts";
import type { ChoiceEvent } from "../../inference/generate-choices.ts";
import {
  answerTimings,
  eventTimings,
  promptProgressSchema,
  timingsSchema,
  toPromptProgress,
} from "../progress-fields.ts";

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
  index: z.int().describe("Which prompt and completion this is, with several."),
  content: z.string(),
  tokens: z.array(z.int()).describe("With return_tokens."),
  id_slot: z.int().describe("The slot that answered; -1 while that is not known."),
  tokens_predicted: z.int().describe("Tokens generated."),
  tokens_evaluated: z.int().describe("Tokens of the prompt."),
  completion_probabilities: probabilitiesField,
};

export const completionSchema = z
  .object({
    ...sharedFields,
    stop: z.literal(true),
    model: z.string(),
    generation_settings: z.record(z.string(), z.unknown()),
    prompt: z.string().describe("As the model has read it."),
    has_new_line: z.boolean(),
    truncated: z.boolean().describe("Whether the context was full before the end."),
    stop_type: z.enum(["eos", "limit", "word"]),
    stopping_word: z.string().describe("The stop sequence that ended it, or empty."),
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
      prompt_progress: promptProgressSchema.optional().describe("If the request asks for it."),
      timings: timingsSchema.optional().describe("With timings_per_token."),
    }),
    completionSchema,
  ])
  .meta({ id: "LlamaServerCompletionChunk" });
type Chunk = Extract<z.output<typeof completionChunkSchema>, { stop: false }>;

/** What answers are written with. */
export interface CompletionStyle {
  readonly model: string;
  readonly settings: Readonly<Record<string, unknown>>;
  /** Token ids and probabilities of what the answer shows. */
  readonly tokens: boolean;
  readonly probabilities: boolean;
  readonly progress: boolean;
  /** The request wants no text. */
  readonly onlyRead: boolean;
  /** Undefined or empty: all fields. */
  readonly fields: readonly string[] | undefined;
}

/** One answer, or what is left of it when its text has been streamed. */
type Ending = Pick<Answer, "reason" | "limitedBy" | "usage" | "timings" | "details"> & {
  readonly text: string;
  readonly stopSequence?: string | undefined;
  readonly hasNewLine: boolean;
  readonly logprobs: readonly TokenLogprob[];
};

export function toCompletion(answer: Answer, index: number, style: CompletionStyle): object {
  const text = style.onlyRead ? "" : answer.text;
  return selectFields(
    toEnd({ ...answer, text, hasNewLine: text.includes("\n") }, index, style),
    style.fields,
  );
}

function toEnd(answer: Ending, index: number, style: CompletionStyle): Completion {
  const { details, usage, stopSequence = "" } = answer;
  const logprobs = style.onlyRead ? [] : answer.logprobs;
  const generated = style.onlyRead ? 0 : usage.completionTokens;
  return {
    index,
    content: answer.text,
    tokens: style.tokens ? logprobs.map(({ id }) => id) : [],
    id_slot: details?.slot ?? -1,
    stop: true,
    model: style.model,
    tokens_predicted: generated,
    tokens_evaluated: usage.promptTokens,
    generation_settings: style.settings,
    prompt: details?.prompt ?? "",
    has_new_line: answer.hasNewLine,
    truncated: details?.truncated === true || answer.limitedBy === "context",
    stop_type: stopSequence !== "" ? "word" : answer.reason === "length" ? "limit" : "eos",
    stopping_word: stopSequence,
    tokens_cached: details?.tokensInCache ?? usage.promptTokens + generated,
    timings: answerTimings(usage, answer.timings),
    ...(style.probabilities && { completion_probabilities: toProbabilities(logprobs) }),
  };
}

type Token = Probabilities[number]["top_logprobs"][number];

function toProbabilities(logprobs: readonly TokenLogprob[]): Probabilities {
  return logprobs.map((token) => ({ ...plainToken(token), top_logprobs: token.top.map(plainToken) }));
}

function plainToken({ id, token, bytes, logprob }: Omit<TokenLogprob, "top">): Token {
  return { id, token, bytes: bytes ?? [...new TextEncoder().encode(token)], logprob };
}

/** The events of a streamed answer; the last one of each choice has all but its text. */
export async function* toCompletionChunks(
  events: AsyncIterable<ChoiceEvent>,
  style: CompletionStyle,
): AsyncGenerator<string, void, undefined> {
  const soFar = new Map<number, { tokens: number; prompt: number; hasNewLine: boolean }>();
  for await (const event of events) {
    const index = event.choice ?? 0;
    const state = soFar.get(index) ?? { tokens: 0, prompt: 0, hasNewLine: false };
    soFar.set(index, state);
    const piece = (more: Partial<Chunk>): string =>
      sseData({
        index,
        content: "",
        tokens: [],
        stop: false,
        id_slot: -1,
        tokens_predicted: state.tokens,
        tokens_evaluated: state.prompt,
        ...more,
      } satisfies Chunk);
    if (event.type === "prompt-progress") {
      state.prompt = event.total;
      if (style.progress) yield piece({ prompt_progress: toPromptProgress(event) });
    } else if (event.type === "text-delta" && !style.onlyRead) {
      const { text, logprobs = [] } = event;
      state.tokens += Math.max(1, logprobs.length);
      state.hasNewLine ||= text.includes("\n");
      const tokens = style.tokens ? logprobs.map(({ id }) => id) : [];
      const probabilities = style.probabilities && { completion_probabilities: toProbabilities(logprobs) };
      const timings = eventTimings(event);
      yield piece({ content: text, tokens, ...probabilities, ...(timings && { timings }) });
    } else if (event.type === "done") {
      const { hasNewLine } = state;
      const end = toEnd({ ...event, text: "", hasNewLine, logprobs: [] }, index, style);
      delete end.completion_probabilities;
      yield sseData(selectFields(end, style.fields));
    }
  }
}

/**
 * The fields of an answer that a request names, nested ones by "timings/prompt_n", which is their name in the result, too.
 * Names that the answer does not have are left out.
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
