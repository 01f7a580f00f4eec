import type { ChatMessage, ToolChoice, ToolDefinition } from "../../engine/protocol/generation.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import type { InferenceRequest, RequestedFormat } from "../../inference/inference.ts";
import { checkFormatWithTools, toConstraint } from "../structured-output-fields.ts";
import { toEngineFields, toSampling } from "../sampling-fields.ts";
import { toReasoningBudget } from "../reasoning-fields.ts";
import { toAssistant, toText, toUserMessages } from "./content-blocks.ts";
import { type MessageRequest, ignoredEdits } from "./message-schema.ts";
import { toToolDefinition } from "./tools.ts";

export function toMessageRequest(body: MessageRequest): InferenceRequest {
  const format = toFormat(body);
  const tools = toTools(body);
  const unheard = ignoredEdits(body.context_management);
  checkFormatWithTools(format, tools.tools.length > 0 && tools.toolChoice !== "none");
  return {
    endpoint: "chat",
    model: body.model ?? undefined,
    isWhole: !body.stream,
    input: {
      kind: "chat",
      messages: [...toSystem(body.system), ...toMessages(body.messages)],
      ...tools,
      ...toThinking(body),
    },
    maxTokens: body.max_tokens,
    stop: body.stop_sequences ?? undefined,
    sampling: toSampling(body),
    format,
    ...toEngineFields(body),
    ...toBudget(body),
    repetitionGuard: body.repetition_guard ?? undefined,
    defaults: { sampling: DEFAULT_SAMPLING },
    ...(unheard.length > 0 && { warnings: unheard }),
  };
}

function toFormat(body: MessageRequest): RequestedFormat {
  const own = body.output_config?.format ?? body.output_format;
  const param = body.output_config?.format ? "output_config.format" : "output_format";
  return toConstraint(body, {
    param,
    format: own ? { type: "json_schema", schema: own.schema, strict: true } : { type: "text" },
  });
}

function toSystem(system: MessageRequest["system"]): ChatMessage[] {
  return system == null ? [] : [{ role: "system", content: toText(system) }];
}

/** One message can become several: each tool result is a separate message. */
function toMessages(messages: MessageRequest["messages"]): ChatMessage[] {
  const lastAnswer = messages.findLastIndex(({ role }) => role === "assistant");
  return messages.flatMap((message, index): ChatMessage[] => {
    if (message.role === "system") return [{ role: "system", content: toText(message.content) }];
    if (typeof message.content === "string")
      return [{ role: message.role, content: toText(message.content) }];
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

/** The API's default effort. */
const DEFAULT_EFFORT = "high";

/**
 * Thinking is off unless requested, as other clients do not expect thinking blocks. Adaptive thinking is passed as an
 * effort, which models that cannot think ignore.
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

/** The API's own field wins over that of llama.cpp's server. */
function toBudget(body: MessageRequest): { reasoningBudget?: number } {
  const own = body.thinking?.type === "enabled" ? body.thinking.budget_tokens : undefined;
  return own == null ? toReasoningBudget(body) : { reasoningBudget: own };
}

/** Whether the client wants thinking blocks without their text. */
export function omitsThinking({ thinking }: MessageRequest): boolean {
  return thinking != null && "display" in thinking && thinking.display === "omitted";
}
