import type { ChatMessage, ToolChoice, ToolDefinition } from "../../engine/protocol/generation.ts";
import type { InferenceRequest, RequestedFormat } from "../../inference/inference.ts";
import { toAssistant, toUserMessages } from "./content-blocks.ts";
import { type MessageRequest, ignoredEdits } from "./message-schema.ts";
import { toToolDefinition } from "./tools.ts";
import { chatInput, textParts } from "../chat-input.ts";
import { checkFormatWithTools, toSingleFormat } from "../structured-output.ts";
import { commonSettings, toReasoningBudget } from "../request-settings.ts";

export function toMessageRequest(body: MessageRequest): InferenceRequest {
  const format = toFormat(body);
  const tools = toTools(body);
  const warnings = ignoredEdits(body.context_management);
  checkFormatWithTools(format, tools.tools.length > 0 && tools.toolChoice !== "none");
  return {
    endpoint: "chat",
    ...commonSettings(body),
    isBuffered: !body.stream,
    input: chatInput([...toSystem(body.system), ...toMessages(body.messages)], {
      ...tools,
      ...toThinking(body),
    }),
    maxTokens: body.max_tokens,
    stop: body.stop_sequences ?? undefined,
    format,
    ...toBudget(body),
    ...(warnings.length > 0 && { warnings }),
  };
}

function toFormat(body: MessageRequest): RequestedFormat {
  const requested = body.output_config?.format ?? body.output_format;
  const param = body.output_config?.format ? "output_config.format" : "output_format";
  return toSingleFormat(body, {
    param,
    format: requested ? { type: "json_schema", schema: requested.schema, strict: true } : { type: "text" },
  });
}

function toSystem(system: MessageRequest["system"]): ChatMessage[] {
  return system == null ? [] : [{ role: "system", content: textParts(system) }];
}

/** Converts messages. One can become several: each tool result is a separate message. */
function toMessages(messages: MessageRequest["messages"]): ChatMessage[] {
  const lastAnswer = messages.findLastIndex(({ role }) => role === "assistant");
  return messages.flatMap((message, index): ChatMessage[] => {
    if (message.role === "system") return [{ role: "system", content: textParts(message.content) }];
    if (typeof message.content === "string")
      return [{ role: message.role, content: textParts(message.content) }];
    return message.role === "assistant"
      ? [toAssistant(message.content)]
      : toUserMessages(message.content, `messages.${index}.content`, index > lastAnswer);
  });
}

function toTools(body: MessageRequest): {
  tools: ToolDefinition[];
  toolChoice: ToolChoice;
  parallelToolCalls: boolean;
} {
  const choice = body.tool_choice ?? { type: "auto" as const };
  return {
    tools: (body.tools ?? []).map(toToolDefinition),
    toolChoice: toToolChoice(choice),
    parallelToolCalls: choice.type === "none" || !choice.disable_parallel_tool_use,
  };
}

function toToolChoice(choice: NonNullable<MessageRequest["tool_choice"]>): ToolChoice {
  if (choice.type === "tool") return { name: choice.name };
  return choice.type === "any" ? "required" : choice.type;
}

/** Default effort of Anthropic's API. */
const DEFAULT_EFFORT = "high";

/**
 * Returns the thinking settings. Thinking is off unless requested, because clients without it do not expect thinking
 * blocks. Adaptive thinking becomes an effort, which models without thinking ignore.
 */
function toThinking({ thinking, output_config: output }: MessageRequest): {
  thinking?: boolean;
  templateVariables?: Record<string, unknown>;
} {
  const isAdaptive = thinking?.type === "adaptive";
  const effort = output?.effort ?? (isAdaptive ? DEFAULT_EFFORT : undefined);
  return {
    ...(!isAdaptive && { thinking: thinking?.type === "enabled" }),
    ...(effort !== undefined && { templateVariables: { reasoning_effort: effort } }),
  };
}

/** Returns the thinking budget. The API's own field takes precedence over those of llama.cpp's server. */
function toBudget(body: MessageRequest): { reasoningBudget?: number } {
  const requested = body.thinking?.type === "enabled" ? body.thinking.budget_tokens : undefined;
  return requested == null ? toReasoningBudget(body) : { reasoningBudget: requested };
}

/** True if the client requests thinking blocks without text. */
export function omitsThinking({ thinking }: MessageRequest): boolean {
  return thinking != null && "display" in thinking && thinking.display === "omitted";
}
