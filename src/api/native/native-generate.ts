import { z } from "zod";
import type { ChatMessage } from "../../engine/protocol/generation.ts";
import type { InferenceRequest } from "../../inference/inference.ts";
import { chatInput, imageParts } from "../chat-input.ts";
import { modelField, optional } from "../../http/input/common-fields.ts";
import { thinkingFromLevel } from "../request-settings.ts";
import { returnProgressField } from "../wire/answer-fields.ts";
import { generationFields, logprobFields, streamField } from "../wire/native.ts";
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
