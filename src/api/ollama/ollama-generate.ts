import { z } from "zod";
import { list } from "../../http/input/bounded-lists.ts";
import { ignored, invalidField, optional } from "../../http/input/common-fields.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import { decodeImage } from "../../inference/media-data.ts";
import type { InferenceEvent, InferenceRequest } from "../../inference/inference.ts";
import type { Model } from "../../models/model.ts";
import { toMaxTokens, toResidency, toStop } from "./ollama-options.ts";
import {
  generationFields,
  type Label,
  labeled,
  labelFields,
  logprobFields,
  logprobsField,
  modelField,
  type ResidencyReason,
  residencyReasonField,
  summary,
  summaryFields,
  toFormat,
  toLogprobs,
} from "./ollama-fields.ts";
import { MAX_MODELFILE_LENGTH } from "../../models/modelfile/parse-instructions.ts";
import { renderPrompt } from "../../models/modelfile/template/go-renderer.ts";
import type { Answer } from "../../inference/collect-answer.ts";
import { line } from "./ollama-error.ts";
import { thinkingFromLevel, toReasoningBudget, toSampling } from "../request-settings.ts";
import { thinkSchema } from "../wire/generation-fields.ts";

/** POST /api/generate of the Ollama API. Unknown fields are ignored. */
export const generateRequestSchema = z
  .object({
    model: modelField,
    prompt: optional(
      z.string(),
      "The prompt. Empty and without images: only load the model, or unload it with keep_alive 0.",
    ),
    system: optional(z.string(), "System prompt that replaces the model's SYSTEM."),
    images: optional(list(z.string()), "Images as base64 (PNG, JPEG, GIF, BMP, WebP)."),
    raw: optional(
      z.boolean(),
      "Send the prompt to the model without the chat template. Cannot be combined with system or images.",
    ),
    think: thinkSchema.describe(
      "Let the model think before it answers: true, false, or a level as in a chat. Default: the Modelfile's THINKING, otherwise false.",
    ),
    ...generationFields,
    suffix: optional(
      z.string(),
      "Text after the completion; requires a model trained for fill-in-the-middle. Cannot be combined with system or images.",
    ),
    template: optional(
      z.string().max(MAX_MODELFILE_LENGTH),
      "A Go template for this prompt instead of the model's. Cannot be combined with raw or images. Reasoning is not separated from the text.",
    ),
    context: ignored("the tokens of a conversation are not stored; use chat with its messages"),
    width: ignored("the daemon does not generate images"),
    height: ignored("the daemon does not generate images"),
    steps: ignored("the daemon does not generate images"),
  })
  .meta({ id: "OllamaGenerateRequest" });
export type GenerateRequest = z.output<typeof generateRequestSchema>;

/** True if a request only loads or unloads the model. */
export function isEmptyPrompt({ prompt, images }: GenerateRequest): boolean {
  return !prompt && (images ?? []).length === 0;
}

/** @throws ServiceError invalid_parameter for an invalid image, or for a field that raw or suffix excludes */
export function toGenerateRequest(body: GenerateRequest, model: Model): InferenceRequest {
  return {
    endpoint: "generate",
    model: model.alias,
    isBuffered: body.stream === false,
    input: toInput(body, model),
    maxTokens: toMaxTokens(body.options, model),
    stop: toStop(body.options),
    sampling: toSampling(body.options ?? {}),
    format: toFormat(body.format),
    logprobs: toLogprobs(body),
    ...toReasoningBudget(body),
    residency: toResidency(body, model),
    repetitionGuard: body.options?.repetition_guard ?? undefined,
    defaults: { sampling: DEFAULT_SAMPLING },
  };
}

function toInput(body: GenerateRequest, model: Model): InferenceRequest["input"] {
  if (body.template) return { kind: "prompt", prompt: renderWithTemplate(body, body.template, model) };
  const prompt = body.prompt ?? "";
  const images = body.images ?? [];
  const isRaw = body.raw === true;
  if (isRaw || body.suffix) {
    if (body.system || images.length > 0) {
      const param = isRaw ? "raw" : "suffix";
      throw invalidField(param, "cannot be combined with system or images.");
    }
    return body.suffix ? { kind: "infill", prefix: prompt, suffix: body.suffix } : { kind: "prompt", prompt };
  }
  return {
    kind: "instruct",
    prompt,
    system: body.system || undefined,
    images: images.map((image, at) => decodeImage(image, `images.${at}`)),
    ...thinkingFromLevel(body.think),
  };
}

/** Applies the template of a request here, because an engine only knows the loaded model's template. */
function renderWithTemplate(body: GenerateRequest, template: string, { settings }: Model): string {
  if (body.raw) throw invalidField("raw", "cannot be combined with a template, which raw leaves out.");
  if ((body.images ?? []).length > 0) {
    throw invalidField("template", "cannot be combined with images; create a model with it instead.");
  }
  return renderPrompt(template, {
    system: body.system || settings.system || "",
    prompt: body.prompt ?? "",
    suffix: body.suffix ?? "",
    thinking: thinkingFromLevel(body.think).thinking,
  });
}

const generateFields = {
  ...labelFields,
  response: z.string().describe("The text, or part of it."),
  thinking: z.string().optional().describe("The model's reasoning, or part of it."),
  logprobs: logprobsField,
};

export const generateAnswerSchema = z
  .object({ ...generateFields, done: z.literal(true), ...summaryFields })
  .meta({ id: "OllamaGenerateAnswer" });
/** Answer to a request without a prompt. */
const generateLoadSchema = z.object({
  ...labelFields,
  response: z.literal(""),
  done: z.literal(true),
  done_reason: residencyReasonField,
});
export const generateLineSchema = z.union([
  z.object({ ...generateFields, done: z.literal(false) }),
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

/** Yields one line per chunk, then an empty response with the statistics. */
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
        // This API has no progress lines, and no tools in generate requests.
        break;
    }
  }
}
