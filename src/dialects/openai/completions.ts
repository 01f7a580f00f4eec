import { z } from "zod";
import { list, tokenList } from "../../http/input/bounded-lists.ts";
import {
  finishReasonSchema,
  MAX_TOP_LOGPROBS,
  type TokenLogprob,
  type Usage,
} from "../../engine/protocol/generation.ts";
import { sseData } from "../../http/streaming/sse-frame.ts";
import { limitField, limitFields } from "../../inference/answer-limit.ts";
import type { Answer } from "../../inference/collect-answer.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import type { ChoiceEvent } from "../../inference/generate-choices.ts";
import type { InferenceRequest, PromptFromTokensRequest } from "../../inference/inference.ts";
import { type AnswerHead, toUsage, usageSchema } from "./openai-answer-fields.ts";
import {
  commonFields,
  tokenLimit,
  toMaxTokens,
  toSampling,
  toStop,
  unsupported,
  withChoice,
} from "./openai-request-fields.ts";
import { STREAM_END } from "./openai-error.ts";

/** The API's default. */
const DEFAULT_MAX_TOKENS = 16;

/** POST /v1/completions. Unknown fields are ignored. */
export const completionRequestSchema = z
  .object({
    ...commonFields,
    prompt: z
      .union([
        z.string(),
        list(z.string(), { least: 1 }),
        tokenList({ least: 1 }),
        list(tokenList({ least: 1 }), { least: 1 }),
      ])
      .describe(
        "One prompt or several, each as text or token IDs. Token IDs that do not come from text are refused.",
      ),
    max_tokens: tokenLimit.describe(
      `Maximum number of tokens to generate; -1: until the context is full. Default: ${DEFAULT_MAX_TOKENS}.`,
    ),
    logprobs: z
      .int()
      .min(0)
      .max(MAX_TOP_LOGPROBS)
      .nullish()
      .describe("Number of alternatives to return for each token."),
    echo: z.boolean().nullish().describe("Return the prompt before the text."),
    suffix: z
      .string()
      .nullish()
      .describe("Text after the completion; requires a model that supports fill-in-the-middle."),
    best_of: z.int().min(1).nullish().describe("At most n: completions are not compared."),
  })
  .meta({ id: "CompletionRequest" });
type CompletionRequest = z.output<typeof completionRequestSchema>;

const logprobsSchema = z
  .object({
    tokens: z.array(z.string()),
    token_logprobs: z.array(z.number()),
    top_logprobs: z.array(z.record(z.string(), z.number())),
    text_offset: z.array(z.int()).describe("Offset of each token in the text."),
  })
  .nullable();
type WireLogprobs = z.output<typeof logprobsSchema>;

const choiceFields = { index: z.int(), text: z.string(), logprobs: logprobsSchema };
const head = { id: z.string(), object: z.literal("text_completion"), created: z.int(), model: z.string() };

export const completionSchema = z
  .object({
    ...head,
    choices: z.array(
      z.object({ ...choiceFields, finish_reason: finishReasonSchema, limited_by: limitField }),
    ),
    usage: usageSchema,
  })
  .meta({ id: "Completion" });

export const completionChunkSchema = z
  .object({
    ...head,
    choices: z.array(
      z.object({ ...choiceFields, finish_reason: finishReasonSchema.nullable(), limited_by: limitField }),
    ),
    usage: usageSchema.nullable().optional().describe("With include_usage: null except in the last chunk."),
  })
  .meta({ id: "CompletionChunk" });
type Chunk = z.output<typeof completionChunkSchema>;

/** @param promptFromTokens finds the text that tokenizes to the given tokens */
export async function toPrompts(
  { prompt, model }: CompletionRequest,
  promptFromTokens: (request: PromptFromTokensRequest) => Promise<string>,
): Promise<readonly string[]> {
  if (typeof prompt === "string") return [prompt];
  const prompts: (string | number[])[] = [];
  const whole: number[] = [];
  for (const item of prompt) {
    if (typeof item === "number") whole.push(item);
    else prompts.push(item);
  }
  if (whole.length > 0) prompts.push(whole);
  return Promise.all(
    prompts.map(async (item) =>
      typeof item === "string"
        ? item
        : await promptFromTokens({ model: model ?? undefined, tokens: item, param: "prompt" }),
    ),
  );
}

/** `n` requests for each prompt, in the order of the prompts. */
export function toCompletionRequests(
  body: CompletionRequest,
  prompts: readonly string[],
): InferenceRequest[] {
  const choices = body.n ?? 1;
  if ((body.best_of ?? 1) > choices) throw unsupported("best_of larger than n is not supported.", "best_of");
  if (body.echo && body.logprobs != null) {
    throw unsupported(
      "echo with logprobs is not supported: prompt tokens have no log probabilities.",
      "echo",
    );
  }
  const sampling = toSampling(body);
  return prompts.flatMap((prompt) =>
    Array.from({ length: choices }, (_, choice): InferenceRequest => ({
      endpoint: "generate",
      model: body.model ?? undefined,
      input: body.suffix
        ? { kind: "infill", prefix: prompt, suffix: body.suffix }
        : { kind: "prompt", prompt },
      maxTokens: toMaxTokens(body.max_tokens),
      stop: toStop(body.stop),
      sampling: withChoice(sampling, choice),
      format: { type: "text" },
      logprobs: body.logprobs ?? undefined,
      repetitionGuard: body.repetition_guard ?? undefined,
      defaults: {
        ...(body.max_tokens !== -1 && { maxTokens: DEFAULT_MAX_TOKENS }),
        sampling: DEFAULT_SAMPLING,
      },
    })),
  );
}

interface CompletionContext {
  readonly head: AnswerHead;
  readonly prompts: readonly string[];
  /** Per prompt. */
  readonly choices: number;
  readonly echo: boolean;
}

export function toCompletion(
  context: CompletionContext,
  answers: readonly Answer[],
): z.output<typeof completionSchema> {
  const { id, created, model } = context.head;
  return {
    id,
    object: "text_completion",
    created,
    model,
    choices: answers.map((answer, index) => ({
      index,
      text: echoed(context, index) + answer.text,
      logprobs: toLogprobs(answer.logprobs, 0),
      finish_reason: answer.reason,
      ...limitFields(answer),
    })),
    usage: toUsage(
      answers.map(({ usage }) => usage),
      context.prompts.length,
    ),
  };
}

/** The events of a streamed answer, including the final `[DONE]`. */
export async function* toCompletionChunks(
  context: CompletionContext,
  events: AsyncIterable<ChoiceEvent>,
  includeUsage: boolean,
): AsyncGenerator<string, void, undefined> {
  const frame = (choices: Chunk["choices"], usage: Chunk["usage"]): string => {
    const { id, created, model } = context.head;
    const chunk: Chunk = { id, object: "text_completion", created, model, choices };
    return sseData(includeUsage ? { ...chunk, usage } : chunk);
  };
  const usages: Usage[] = [];
  const offsets: number[] = [];
  for await (const event of events) {
    const index = event.choice ?? 0;
    if (event.type === "start") {
      const text = echoed(context, index);
      if (text !== "") yield frame([{ index, text, logprobs: null, finish_reason: null }], null);
    } else if (event.type === "text-delta") {
      const logprobs = toLogprobs(event.logprobs ?? [], offsets[index] ?? 0);
      offsets[index] = (offsets[index] ?? 0) + event.text.length;
      yield frame([{ index, text: event.text, logprobs, finish_reason: null }], null);
    } else if (event.type === "done") {
      usages[index] = event.usage;
      yield frame(
        [{ index, text: "", logprobs: null, finish_reason: event.reason, ...limitFields(event) }],
        null,
      );
    }
  }
  if (includeUsage) yield frame([], toUsage(usages, context.prompts.length));
  yield STREAM_END;
}

function echoed({ prompts, choices, echo }: CompletionContext, choice: number): string {
  return echo ? (prompts[Math.floor(choice / choices)] ?? "") : "";
}

function toLogprobs(logprobs: readonly TokenLogprob[], start: number): WireLogprobs {
  if (logprobs.length === 0) return null;
  let offset = start;
  return {
    tokens: logprobs.map(({ token }) => token),
    token_logprobs: logprobs.map(({ logprob }) => logprob),
    top_logprobs: logprobs.map(({ top }) =>
      Object.fromEntries(top.map((entry) => [entry.token, entry.logprob])),
    ),
    text_offset: logprobs.map(({ token }) => {
      const begin = offset;
      offset += token.length;
      return begin;
    }),
  };
}
