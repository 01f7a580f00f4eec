import { z } from "zod";
import { finishReasonSchema, type TokenLogprob, type Usage } from "../../engine/protocol/generation.ts";
import type { Answer } from "../../inference/collect-answer.ts";
import type { ChoiceEvent } from "../../inference/generate-choices.ts";
import type { PromptToken } from "../../inference/score-prompt.ts";
import {
  type AnswerHead,
  chunkWriter,
  progressFields,
  type StreamOptions,
  timingFields,
  timingsField,
  toUsage,
  usageSchema,
} from "./openai-fields.ts";
import { STREAM_END } from "./openai-error.ts";
import { limitField } from "../wire/answer-fields.ts";
import { eventTimings, toPromptProgress } from "../answer-fields.ts";

const logprobsSchema = z
  .object({
    tokens: z.array(z.string()),
    token_logprobs: z
      .array(z.number().nullable())
      .describe(
        "Null for the first token of an echoed prompt, and for tokens inside a character that takes several.",
      ),
    top_logprobs: z.array(z.record(z.string(), z.number()).nullable()),
    text_offset: z.array(z.int()).describe("Offset of each token in the text."),
  })
  .nullable();
type WireLogprobs = z.output<typeof logprobsSchema>;

/** Prompt to echo. */
export interface CompletionPrompt {
  readonly text: string;
  readonly logprobs: WireLogprobs;
}

const choiceFields = { index: z.int(), text: z.string(), logprobs: logprobsSchema };
const head = { id: z.string(), object: z.literal("text_completion"), created: z.int(), model: z.string() };

export const completionSchema = z
  .object({
    ...head,
    choices: z.array(
      z.object({ ...choiceFields, finish_reason: finishReasonSchema, limited_by: limitField }),
    ),
    usage: usageSchema,
    timings: timingsField,
  })
  .meta({ id: "Completion" });

export const completionChunkSchema = z
  .object({
    ...head,
    choices: z.array(
      z.object({ ...choiceFields, finish_reason: finishReasonSchema.nullable(), limited_by: limitField }),
    ),
    usage: usageSchema.nullable().optional().describe("With include_usage: null except in the last chunk."),
    ...progressFields,
  })
  .meta({ id: "CompletionChunk" });

export interface CompletionContext {
  readonly head: AnswerHead;
  readonly prompts: readonly CompletionPrompt[];
  /** Choices per prompt. */
  readonly choices: number;
  readonly echo: boolean;
  /** False: the answer has no log probabilities. */
  readonly logprobs: boolean;
}

export function toCompletion(
  context: CompletionContext,
  answers: readonly Answer[],
  options: Pick<StreamOptions, "timingsPerToken">,
): z.output<typeof completionSchema> {
  const { id, created, model } = context.head;
  const perPrompt = answers.length / context.prompts.length;
  const returned = context.prompts.flatMap((_, at) =>
    pickMostLikely(answers.slice(at * perPrompt, (at + 1) * perPrompt), context.choices),
  );
  const toChoice = (answer: Answer, index: number): z.output<typeof completionSchema>["choices"][number] => {
    const prompt = echoedPrompt(context, index);
    const text = prompt?.text ?? "";
    const logprobs = context.logprobs ? toLogprobs(answer.logprobs, text.length) : null;
    return {
      index,
      text: text + answer.text,
      logprobs: joinLogprobs(prompt?.logprobs ?? null, logprobs),
      finish_reason: answer.reason,
      limited_by: answer.limitedBy,
    };
  };
  return {
    id,
    object: "text_completion",
    created,
    model,
    choices: returned.map(toChoice),
    usage: toUsage(
      answers.map(({ usage }) => usage),
      context.prompts.length,
    ),
    ...timingFields(answers, options),
  };
}

/** Converts a prompt's tokens to the prompt to echo. */
export function toCompletionPrompt(tokens: readonly PromptToken[], hasLogprobs: boolean): CompletionPrompt {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let text = "";
  const offsets = tokens.map(({ bytes }) => {
    const offset = text.length;
    text += decoder.decode(bytes, { stream: true });
    return offset;
  });
  text += decoder.decode();
  if (!hasLogprobs) return { text, logprobs: null };
  return {
    text,
    logprobs: {
      tokens: tokens.map(({ bytes }) => tokenText(bytes)),
      token_logprobs: tokens.map(({ score }) => score?.logprob ?? null),
      top_logprobs: tokens.map(({ score }) => score && toTop(score)).map((top) => top ?? null),
      text_offset: offsets,
    },
  };
}

/** Returns the text of a token. Like OpenAI, writes part of a character as its bytes: `bytes:\\xf0\\x9f`. */
function tokenText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return `bytes:${Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}`;
  }
}

/** Yields the events of a streamed answer, including the final `[DONE]`. */
export async function* toCompletionChunks(
  context: CompletionContext,
  events: AsyncIterable<ChoiceEvent>,
  options: StreamOptions,
): AsyncGenerator<string, void, undefined> {
  const frame = chunkWriter("text_completion", context.head, options);
  const usages: Usage[] = [];
  const offsets: number[] = [];
  for await (const event of events) {
    const index = event.choice ?? 0;
    const timings = options.timingsPerToken ? eventTimings(event) : undefined;
    if (event.type === "start") {
      const prompt = echoedPrompt(context, index);
      if (!prompt) continue;
      const { text, logprobs } = prompt;
      offsets[index] = text.length;
      if (text !== "") yield frame([{ index, text, logprobs, finish_reason: null }]);
    } else if (event.type === "prompt-progress") {
      const progress = { prompt_progress: toPromptProgress(event) };
      if (options.returnProgress)
        yield frame([{ index, text: "", logprobs: null, finish_reason: null }], progress);
    } else if (event.type === "text-delta") {
      const logprobs = toLogprobs(event.logprobs ?? [], offsets[index] ?? 0);
      offsets[index] = (offsets[index] ?? 0) + event.text.length;
      yield frame([{ index, text: event.text, logprobs, finish_reason: null }], { timings });
    } else if (event.type === "done") {
      usages[index] = event.usage;
      yield frame(
        [{ index, text: "", logprobs: null, finish_reason: event.reason, limited_by: event.limitedBy }],
        { timings },
      );
    }
  }
  if (options.includeUsage) yield frame([], {}, toUsage(usages, context.prompts.length));
  yield STREAM_END;
}

function echoedPrompt(
  { prompts, choices, echo }: CompletionContext,
  choice: number,
): CompletionPrompt | undefined {
  return echo ? prompts[Math.floor(choice / choices)] : undefined;
}

/** Returns the `count` answers with the highest mean log probability. */
function pickMostLikely(answers: readonly Answer[], count: number): readonly Answer[] {
  if (answers.length <= count) return answers;
  return answers.toSorted((one, other) => meanLogprob(other) - meanLogprob(one)).slice(0, count);
}

function meanLogprob({ logprobs }: Answer): number {
  if (logprobs.length === 0) return Number.NEGATIVE_INFINITY;
  return logprobs.reduce((sum, { logprob }) => sum + logprob, 0) / logprobs.length;
}

function joinLogprobs(first: WireLogprobs, second: WireLogprobs): WireLogprobs {
  if (!first || !second) return first ?? second;
  return {
    tokens: [...first.tokens, ...second.tokens],
    token_logprobs: [...first.token_logprobs, ...second.token_logprobs],
    top_logprobs: [...first.top_logprobs, ...second.top_logprobs],
    text_offset: [...first.text_offset, ...second.text_offset],
  };
}

function toLogprobs(logprobs: readonly TokenLogprob[], start: number): WireLogprobs {
  if (logprobs.length === 0) return null;
  let offset = start;
  return {
    tokens: logprobs.map(({ token }) => token),
    token_logprobs: logprobs.map(({ logprob }) => logprob),
    top_logprobs: logprobs.map(toTop),
    text_offset: logprobs.map(({ token }) => {
      const begin = offset;
      offset += token.length;
      return begin;
    }),
  };
}

function toTop({ top }: TokenLogprob): Record<string, number> {
  return Object.fromEntries(top.map((entry) => [entry.token, entry.logprob]));
}
