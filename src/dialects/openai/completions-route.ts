import { tellWarnings } from "../../http/middleware/answer-warnings.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { SSE_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import { type ChoiceEvent, collectChoices, generateChoices } from "../../inference/generate-choices.ts";
import type { Inference, ScoreAnswer } from "../../inference/inference.ts";
import type { Services } from "../services.ts";
import {
  type CompletionContext,
  type CompletionPrompt,
  completionChunkSchema,
  completionSchema,
  toCompletion,
  toCompletionChunks,
  toCompletionPrompt,
} from "./completion-answer.ts";
import {
  checkCombinations,
  type CompletionRequest,
  completionRequestSchema,
  needsPromptTokens,
  promptItems,
  requestedAlternatives,
  toCompletionRequests,
} from "./completion-request.ts";
import { answerHead } from "./openai-answer-fields.ts";
import { toChoices, toStreamOptions } from "./openai-request-fields.ts";
import { openaiEvents } from "./openai-error.ts";

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
          ? { model: scored.model, events: onlyEcho(scored, toChoices(body)), warnings: [] }
          : await generateChoices(inference, requests, config.models.slots, signal);
      tellWarnings(context, warnings);
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

/** The prompts' texts, with the log-probabilities of their tokens if the answer begins with those. */
async function readPrompts(
  inference: Inference,
  body: CompletionRequest,
  signal: AbortSignal,
): Promise<{ prompts: readonly CompletionPrompt[]; scored: ScoreAnswer | undefined }> {
  const model = body.model ?? undefined;
  const items = promptItems(body);
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

/** The events of an answer that has no text of its own. */
async function* onlyEcho(
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
