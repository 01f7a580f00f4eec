import { z } from "zod";
import { MAX_TOP_LOGPROBS } from "../../engine/protocol/generation.ts";
import { list, textItems, tokenList } from "../../http/input/bounded-lists.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { SSE_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import { type ChoiceEvent, collectChoices, generateChoices } from "../../inference/generate-choices.ts";
import type { Inference, InferenceRequest, ScoreAnswer } from "../../inference/inference.ts";
import type { Services } from "../services.ts";
import {
  completionChunkSchema,
  type CompletionContext,
  type CompletionPrompt,
  completionSchema,
  toCompletion,
  toCompletionChunks,
  toCompletionPrompt,
} from "./completion-answer.ts";
import { openaiEvents } from "./openai-error.ts";
import { answerHead, commonFields, tokenLimit, toMaxTokens, toStreamOptions } from "./openai-fields.ts";
import { formatFields, toOutputFormat } from "./output-format.ts";
import { invalidField, optional } from "../../http/input/common-fields.ts";
import { choiceCount, noThinkingFields, probabilitiesField } from "../wire/generation-fields.ts";
import { commonSettings, perChoice, toChoices, toStop } from "../request-settings.ts";

/** POST /v1/completions. */
export function completionsRoute({ inference, config }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/completions",
    tag: "Chat-completions API",
    summary: "Create a text completion",
    description: "The prompt is sent to the model without its chat template. Unknown fields are ignored.",
    body: completionRequestSchema,
    answers: [
      { description: "The completion.", schema: completionSchema },
      { contentType: SSE_TYPE, description: "With stream: the chunks.", schema: completionChunkSchema },
    ],
    async handle(context, { body }) {
      checkCombinations(body);
      const { signal } = context.req.raw;
      const { prompts, scored } = await readPrompts(inference, body, signal);
      const requests = toCompletionRequests(
        body,
        prompts.map(({ text }) => text),
      );
      const { model, events, warnings } =
        scored && requests.length === 0
          ? { model: scored.model, events: echoEvents(scored, toChoices(body)), warnings: [] }
          : await generateChoices(inference, requests, config.models.slots, signal);
      context.set("warnings", warnings);
      const completion: CompletionContext = {
        head: answerHead("cmpl", model),
        prompts,
        choices: toChoices(body),
        echo: body.echo ?? false,
        logprobs: requestedAlternatives(body) !== undefined,
      };
      const options = toStreamOptions(body);
      if (body.stream) {
        const chunks = toCompletionChunks(completion, events, options);
        return streamResponse(context, chunks, openaiEvents);
      }
      const count = requests.length || prompts.length * completion.choices;
      return context.json(toCompletion(completion, await collectChoices(events, count), options));
    },
  });
}

/** Returns the prompts' texts, with the log probabilities of their tokens if the request echoes them. */
async function readPrompts(
  inference: Inference,
  body: CompletionRequest,
  signal: AbortSignal,
): Promise<{ prompts: readonly CompletionPrompt[]; scored: ScoreAnswer | undefined }> {
  const model = body.model ?? undefined;
  const items = textItems(body.prompt);
  const toText = async (item: string | number[]): Promise<string> =>
    typeof item === "string"
      ? item
      : await inference.promptFromTokens({ model, tokens: item, param: "prompt" }, signal);
  if (!needsPromptTokens(body)) {
    const texts = await Promise.all(items.map(toText));
    return { prompts: texts.map((text) => ({ text, logprobs: null })), scored: undefined };
  }
  const alternatives = requestedAlternatives(body);
  const scored = await inference.score({ model, prompts: items, logprobs: alternatives }, signal);
  const echoes = scored.prompts.map(({ shown }) => toCompletionPrompt(shown, alternatives !== undefined));
  if (body.max_tokens === 0) return { prompts: echoes, scored };
  const prompts = echoes.map(async ({ text, logprobs }, at) => ({
    text: await toText(items[at] ?? text),
    logprobs,
  }));
  return { prompts: await Promise.all(prompts), scored };
}

/** Yields the events of an answer that only echoes the prompt. */
async function* echoEvents(
  { prompts }: ScoreAnswer,
  choices: number,
): AsyncGenerator<ChoiceEvent, void, undefined> {
  for (let choice = 0; choice < prompts.length * choices; choice += 1) {
    const promptTokens = prompts[Math.floor(choice / choices)]?.tokens ?? 0;
    yield { choice, type: "start" };
    yield {
      choice,
      type: "done",
      reason: "length",
      usage: { promptTokens, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 },
      timings: { promptMs: 0, completionMs: 0 },
      totalMs: 0,
      tokensPerSecond: 0,
    };
  }
}

/** Default of OpenAI's API. */
const DEFAULT_MAX_TOKENS = 16;

/** POST /v1/completions. Unknown fields are ignored. */
export const completionRequestSchema = z
  .object({
    ...commonFields,
    ...noThinkingFields,
    prompt: z
      .union([
        z.string(),
        list(z.string(), { min: 1 }),
        tokenList({ min: 1 }),
        list(tokenList({ min: 1 }), { min: 1 }),
      ])
      .describe(
        "One prompt or several, each as text or token IDs. Token IDs that do not result from tokenizing a text are refused.",
      ),
    max_tokens: z
      .union([tokenLimit, z.literal(0)])
      .describe(
        `Maximum number of tokens to generate; -1: until the context is full; 0, with echo: none. Default: ${DEFAULT_MAX_TOKENS}.`,
      ),
    logprobs: optional(
      z.int().min(0).max(MAX_TOP_LOGPROBS),
      "Number of alternatives to return for each token.",
    ),
    n_predict: tokenLimit.describe("llama.cpp's name of max_tokens."),
    max_completion_tokens: tokenLimit.describe("Another name of max_tokens."),
    n_probs: probabilitiesField,
    echo: optional(
      z.boolean(),
      "Return the prompt before the text; with logprobs, also return the log probabilities of its tokens.",
    ),
    suffix: optional(
      z.string(),
      "Text after the completion; requires a model trained for fill-in-the-middle.",
    ),
    best_of: optional(
      choiceCount,
      "Generate this many completions, at least n, and return the n most likely ones. Cannot be streamed. Default: n.",
    ),
    ...formatFields,
  })
  .meta({ id: "CompletionRequest" });
type CompletionRequest = z.output<typeof completionRequestSchema>;

/** Number of completions to generate per prompt; the best `n` are returned. */
function generatedChoices(body: Pick<CompletionRequest, "n" | "n_cmpl" | "best_of">): number {
  return body.best_of ?? toChoices(body);
}

/** True if the echo needs the log probabilities or the number of the prompts' tokens. */
function needsPromptTokens(body: CompletionRequest): boolean {
  return body.echo === true && (requestedAlternatives(body) !== undefined || body.max_tokens === 0);
}

/** Number of alternatives to report per token; undefined: no log probabilities. */
function requestedAlternatives({
  logprobs,
  n_probs: probabilities,
}: Pick<CompletionRequest, "logprobs" | "n_probs">): number | undefined {
  return logprobs ?? (probabilities || undefined);
}

/** Returns {@link generatedChoices} requests per prompt, in the order of the prompts; none if max_tokens is 0. */
export function toCompletionRequests(
  body: CompletionRequest,
  prompts: readonly string[],
): InferenceRequest[] {
  if (body.max_tokens === 0) return [];
  const choices = generatedChoices(body);
  const isRanked = choices > toChoices(body);
  const settings = commonSettings(body);
  const alternatives = requestedAlternatives(body);
  const limit = body.max_tokens ?? body.max_completion_tokens ?? body.n_predict;
  const format = toOutputFormat(body);
  return prompts.flatMap((prompt) =>
    perChoice(
      {
        ...settings,
        endpoint: "generate",
        isBuffered: !body.stream,
        input: body.suffix
          ? { kind: "infill", prefix: prompt, suffix: body.suffix }
          : { kind: "prompt", prompt },
        maxTokens: toMaxTokens(limit),
        stop: toStop(body.stop),
        format,
        logprobs: alternatives ?? (isRanked ? 0 : undefined),
        timings: body.timings_per_token ?? false,
        // Evaluation harnesses request one token and drop its entry, so it must exist even for a token without text.
        ...(needsPromptTokens(body) && { emptyTokens: true }),
        defaults: {
          ...(limit !== -1 && { maxTokens: DEFAULT_MAX_TOKENS }),
          sampling: DEFAULT_SAMPLING,
        },
      },
      choices,
    ),
  );
}

/** @throws ServiceError invalid_parameter for fields that cannot be combined */
function checkCombinations(body: CompletionRequest): void {
  const { max_tokens: maxTokens, best_of: best, echo, suffix } = body;
  if (maxTokens === 0 && !echo)
    rejectField("max_tokens", "must be at least 1, or the request must have echo");
  if (suffix && needsPromptTokens(body)) rejectField("suffix", "cannot be combined with echo and logprobs");
  if (best == null) return;
  if (best < toChoices(body)) rejectField("best_of", "must be at least n");
  if (best > toChoices(body) && body.stream) {
    rejectField("best_of", "cannot be streamed: completions are compared when they are complete");
  }
}

function rejectField(param: string, what: string): never {
  throw invalidField(param, `${what}.`);
}
