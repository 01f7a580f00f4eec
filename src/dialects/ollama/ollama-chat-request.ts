import { z } from "zod";
import { dictionary, list } from "../../http/input/list.ts";
import {
  jsonSchemaSchema,
  type ChatMessage,
  type ContentPart,
  type ToolDefinition,
} from "../../engine/protocol/generation.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import { decodeImage } from "../../inference/image-data.ts";
import type { InferenceRequest } from "../../inference/inference.ts";
import type { Model } from "../../models/model.ts";
import { toMaxTokens, toResidency, toSampling, toStop } from "./ollama-options.ts";
import {
  generationFields,
  modelField,
  thinkSchema,
  toFormat,
  toLogprobs,
  toThinking,
  type Think,
} from "./ollama-request-fields.ts";
import { linkToolResults } from "./tool-calls.ts";

const messageSchema = z.object({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: z.string().nullish().describe("Message text."),
  thinking: z.string().nullish().describe("What the model thought, for templates that want it back."),
  images: list(z.string()).nullish().describe("Images as base64 (PNG, JPEG, GIF, BMP)."),
  tool_calls: list(
    z.object({
      id: z.string().nullish(),
      function: z.object({
        name: z.string(),
        arguments: z
          .union([dictionary(z.unknown()), z.string()])
          .nullish()
          .describe("An object; JSON text is taken too."),
      }),
    }),
  )
    .nullish()
    .describe("Calls that the model made in this turn."),
  tool_name: z.string().nullish().describe("In a tool's result: which tool."),
  tool_call_id: z.string().nullish().describe("In a tool's result: which call. Default: the first open one."),
});
type WireMessage = z.output<typeof messageSchema>;

const toolSchema = z.object({
  type: z.string().nullish(),
  function: z.object({
    name: z.string().min(1).describe("Name of the function."),
    description: z.string().nullish().describe("What it does, for the model."),
    parameters: jsonSchemaSchema.nullish().describe("JSON Schema of its arguments."),
  }),
});

/** POST /api/chat of the Ollama API. Unknown fields are ignored. */
export const chatRequestSchema = z
  .object({
    model: modelField,
    messages: list(messageSchema)
      .nullish()
      .describe("The conversation. None: the model is only loaded, or unloaded with keep_alive 0."),
    tools: list(toolSchema).nullish().describe("Functions that the model may call."),
    think: thinkSchema.describe(
      'Let the model think before it answers: true, false, or "low", "medium", "high", "max" for templates that know levels. Default: as its THINKING says, else false.',
    ),
    ...generationFields,
  })
  .meta({ id: "OllamaChatRequest" });
export type ChatRequest = z.output<typeof chatRequestSchema>;

/** @throws ServiceError invalid_parameter for an invalid image */
export function toChatRequest(body: ChatRequest, model: Model): InferenceRequest {
  return {
    endpoint: "chat",
    model: model.alias,
    input: {
      kind: "chat",
      messages: linkToolResults((body.messages ?? []).map(toMessage)),
      tools: (body.tools ?? []).map(toTool),
      toolChoice: "auto",
      parallelToolCalls: true,
      thinking: toThinking(body.think),
      ...thinkingLevel(body.think),
    },
    maxTokens: toMaxTokens(body.options, model),
    stop: toStop(body.options),
    sampling: toSampling(body.options),
    format: toFormat(body.format),
    logprobs: toLogprobs(body),
    residency: toResidency(body, model),
    defaults: { sampling: DEFAULT_SAMPLING },
  };
}

/** Templates of models with levels read it as reasoning_effort. */
function thinkingLevel(think: Think): { templateVariables?: Record<string, unknown> } {
  return typeof think === "string" ? { templateVariables: { reasoning_effort: think } } : {};
}

function toTool({
  function: { name, description, parameters },
}: z.output<typeof toolSchema>): ToolDefinition {
  return { name, description: description ?? undefined, parameters: parameters ?? undefined };
}

function toMessage(message: WireMessage, index: number): ChatMessage {
  const images = (message.images ?? []).map((image, at): ContentPart => ({
    type: "image",
    data: decodeImage(image, `messages.${index}.images.${at}`),
  }));
  const text: ContentPart[] = message.content ? [{ type: "text", text: message.content }] : [];
  const content = [...images, ...text];
  switch (message.role) {
    case "assistant":
      return {
        role: "assistant",
        content,
        reasoning: message.thinking ?? undefined,
        toolCalls: message.tool_calls?.map((call, at) => ({
          id: call.id ?? `call_${index}_${at}`,
          name: call.function.name,
          arguments: argumentsText(call.function.arguments),
        })),
      };
    case "tool":
      return {
        role: "tool",
        content,
        toolCallId: message.tool_call_id ?? undefined,
        name: message.tool_name ?? undefined,
      };
    case "user":
      return { role: "user", content };
    default:
      return { role: "system", content };
  }
}

function argumentsText(value: string | Record<string, unknown> | null | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? {});
}
