import { z } from "zod";
import { list } from "../../http/input/bounded-lists.ts";
import { ignored, invalidField, optional } from "../../http/input/common-fields.ts";
import { decodeImage } from "../../inference/media-data.ts";
import type { InferenceRequest } from "../../inference/inference.ts";
import type { Model } from "../../models/model.ts";
import { MAX_MODELFILE_LENGTH } from "../../models/modelfile/parse-instructions.ts";
import { renderPrompt } from "../../models/modelfile/template/go-renderer.ts";
import { thinkingFromLevel } from "../request-settings.ts";
import { thinkSchema } from "../wire/generation-fields.ts";
import { type Content, labelFields, logprobsField, summaryFields } from "./ollama-answer.ts";
import { generationFields, modelField, toSettings } from "./ollama-fields.ts";

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
type GenerateRequest = z.output<typeof generateRequestSchema>;

/** @throws ServiceError invalid_parameter for an invalid image, or for a field that raw or suffix excludes */
export function toGenerateRequest(body: GenerateRequest, model: Model): InferenceRequest {
  return {
    endpoint: "generate",
    input: toInput(body, model),
    ...toSettings(body, model),
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
export const generateLineSchema = z.union([
  z.object({ ...generateFields, done: z.literal(false) }),
  generateAnswerSchema,
]);

/** Requests of this route have no tools. */
export function placeInResponse({ text, thinking }: Content) {
  return { response: text, ...(thinking !== undefined && { thinking }) };
}
