import { z } from "zod";
import { list } from "../../http/input/list.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { ignored } from "../../http/input/known-fields.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import { decodeImage } from "../../inference/image-data.ts";
import type { InferenceEvent, InferenceRequest } from "../../inference/inference.ts";
import type { Model } from "../../models/model.ts";
import { toMaxTokens, toResidency, toSampling, toStop } from "./ollama-options.ts";
import {
  generationFields,
  modelField,
  thinkSchema,
  toFormat,
  toLogprobs,
  toThinking,
} from "./ollama-request-fields.ts";
import type { Answer } from "../../inference/collect-answer.ts";
import { line } from "./ollama-error.ts";
import {
  labelFields,
  labeled,
  logprobFields,
  logprobsField,
  residencyReasonField,
  summary,
  summaryFields,
  type Label,
  type ResidencyReason,
} from "./ollama-answer-fields.ts";

/** POST /api/generate of the Ollama API. Unknown fields are ignored. */
export const generateRequestSchema = z
  .object({
    model: modelField,
    prompt: z
      .string()
      .nullish()
      .describe("The text. None, and no images: the model is only loaded, or unloaded with keep_alive 0."),
    system: z.string().nullish().describe("System text; replaces the model's own SYSTEM."),
    images: list(z.string()).nullish().describe("Images as base64 (PNG, JPEG, GIF, BMP)."),
    raw: z
      .boolean()
      .nullish()
      .describe("Give the prompt to the model as it is, without its template. Not with system or images."),
    think: thinkSchema.describe(
      "Let the model think before it answers; a level counts as true. Default: as its THINKING says, else false.",
    ),
    ...generationFields,
    suffix: z
      .string()
      .nullish()
      .describe(
        "What comes after the text, for models that can fill in the middle; others refuse it. Not with system or images.",
      ),
    template: onlyEmpty("a model's template is set when it is made; make one with POST /api/create"),
    context: ignored("the conversation's tokens are not kept; use chat with its messages"),
    width: ignored("the daemon makes no images"),
    height: ignored("the daemon makes no images"),
    steps: ignored("the daemon makes no images"),
  })
  .meta({ id: "OllamaGenerateRequest" });
export type GenerateRequest = z.output<typeof generateRequestSchema>;

/** A text that the daemon cannot heed. Clients that always send the field send it empty. */
function onlyEmpty(why: string) {
  return z
    .literal("", { error: `is not supported: ${why}` })
    .nullish()
    .describe(`Refused: ${why}.`);
}

/** True when there is nothing to answer: the request is about the model's memory alone. */
export function isEmptyPrompt({ prompt, images }: GenerateRequest): boolean {
  return !prompt && (images ?? []).length === 0;
}

/** @throws ServiceError invalid_parameter for an invalid image, and for what does not go with raw */
export function toGenerateRequest(body: GenerateRequest, model: Model): InferenceRequest {
  return {
    endpoint: "generate",
    model: model.alias,
    input: toInput(body),
    maxTokens: toMaxTokens(body.options, model),
    stop: toStop(body.options),
    sampling: toSampling(body.options),
    format: toFormat(body.format),
    logprobs: toLogprobs(body),
    residency: toResidency(body, model),
    defaults: { sampling: DEFAULT_SAMPLING },
  };
}

function toInput(body: GenerateRequest): InferenceRequest["input"] {
  const prompt = body.prompt ?? "";
  const images = body.images ?? [];
  const isRaw = body.raw === true;
  if (isRaw || body.suffix) {
    if (body.system || images.length > 0) {
      const param = isRaw ? "raw" : "suffix";
      throw new ServiceError("invalid_parameter", `${param}: goes without system and images.`, { param });
    }
    return body.suffix ? { kind: "infill", prefix: prompt, suffix: body.suffix } : { kind: "prompt", prompt };
  }
  return {
    kind: "instruct",
    prompt,
    system: body.system || undefined,
    images: images.map((image, at) => decodeImage(image, `images.${at}`)),
    thinking: toThinking(body.think),
  };
}

const common = {
  ...labelFields,
  response: z.string().describe("The text, or a piece of it."),
  thinking: z.string().optional().describe("The model's reasoning, or a piece of it."),
  logprobs: logprobsField,
};

export const generateAnswerSchema = z
  .object({ ...common, done: z.literal(true), ...summaryFields })
  .meta({ id: "OllamaGenerateAnswer" });
/** The answer when there is no prompt. */
const generateLoadSchema = z.object({
  ...labelFields,
  response: z.literal(""),
  done: z.literal(true),
  done_reason: residencyReasonField,
});
export const generateLineSchema = z.union([
  z.object({ ...common, done: z.literal(false) }),
  generateAnswerSchema,
]);

export function toGenerateAnswer(answer: Answer, label: Label): z.output<typeof generateAnswerSchema> {
  return {
    ...labeled(label),
    response: answer.text,
    ...(answer.reasoning !== "" && { thinking: answer.reasoning }),
    ...logprobFields(answer.logprobs),
    done: true,
    ...summary(answer, label.loadMs),
  };
}

export function toGenerateLoad(
  reason: ResidencyReason,
  label: Pick<Label, "model" | "now">,
): z.output<typeof generateLoadSchema> {
  return { ...labeled(label), response: "", done: true, done_reason: reason };
}

/** A line for each piece, and a last one with an empty response and the summary. */
export async function* toGenerateLines(
  events: AsyncIterable<InferenceEvent>,
  label: Label,
): AsyncGenerator<string, void, undefined> {
  for await (const event of events) {
    switch (event.type) {
      case "text-delta":
        yield line({
          ...labeled(label),
          response: event.text,
          ...logprobFields(event.logprobs),
          done: false,
        });
        break;
      case "reasoning-delta":
        yield line({ ...labeled(label), response: "", thinking: event.text, done: false });
        break;
      case "done":
        yield line({ ...labeled(label), response: "", done: true, ...summary(event, label.loadMs) });
        break;
      default:
        // Progress has no line here, and without tools there are no calls.
        break;
    }
  }
}
