import { z } from "zod";
import type { ChatMessage } from "../../engine/protocol/generation.ts";
import type { InferenceRequest } from "../../inference/inference.ts";
import { chatInput, imageParts } from "../chat-input.ts";
import { modelField, optional } from "../../http/input/common-fields.ts";
import { thinkingFromLevel } from "../request-settings.ts";
import { promptProgressSchema, returnProgressField } from "../wire/answer-fields.ts";
import {
  deltaStatisticsFields,
  generationFields,
  logprobFields,
  logprobsField,
  streamField,
  summaryFields,
  wireToolCallSchema,
} from "../wire/native.ts";
import { type Content, toSettings, toToolChoice, toTools } from "./native-conversion.ts";

export const generateRequestSchema = z
  .object({
    model: modelField,
    prompt: z.string().describe("Input text."),
    system: optional(z.string(), "System prompt; empty for none. Default: the Modelfile's."),
    stream: streamField,
    ...generationFields,
    ...logprobFields,
    return_progress: returnProgressField,
  })
  .meta({ id: "GenerateRequest" });

const answerFields = {
  model: z.string().describe("The model that generated the answer."),
  thinking: z.string().optional().describe("The model's reasoning."),
  tool_calls: z.array(wireToolCallSchema).optional().describe("Calls of the request's tools."),
};

export const generateAnswerSchema = z
  .object({
    ...answerFields,
    response: z.string().describe("The generated text."),
    ...logprobsField,
    done: z.literal(true),
    ...summaryFields,
  })
  .meta({ id: "GenerateAnswer" });

export const generateLineSchema = z
  .union([
    z.object({
      ...answerFields,
      response: z.string().describe("Part of the text."),
      ...logprobsField,
      prompt_progress: promptProgressSchema.optional().describe("If the request has return_progress."),
      ...deltaStatisticsFields,
      done: z.literal(false),
    }),
    generateAnswerSchema,
  ])
  .meta({ id: "GenerateLine" });

type GenerateRequest = z.output<typeof generateRequestSchema>;

export function toGenerateRequest(body: GenerateRequest): InferenceRequest {
  return { endpoint: "generate", input: toInput(body), ...toSettings(body) };
}

/** Converts the input. Tools require a chat; without tools, models without a chat template can answer too. */
function toInput(body: GenerateRequest): InferenceRequest["input"] {
  const images = imageParts(body.images, "images");
  const tools = toTools(body.tools);
  const thinking = thinkingFromLevel(body.think);
  if (tools.length === 0) {
    return {
      kind: "instruct",
      prompt: body.prompt,
      system: body.system ?? undefined,
      images: images.map(({ data }) => data),
      ...thinking,
    };
  }
  // An empty system message overrides the Modelfile's.
  const system: ChatMessage[] =
    body.system == null ? [] : [{ role: "system", content: [{ type: "text", text: body.system }] }];
  const user: ChatMessage = { role: "user", content: [...images, { type: "text", text: body.prompt }] };
  return chatInput([...system, user], { tools, toolChoice: toToolChoice(body.tool_choice), ...thinking });
}

export function placeInResponse({ text, ...more }: Content) {
  return { response: text, ...more };
}
