import type {
  ChatMessage,
  ContentPart,
  ToolCall,
  ToolChoice,
  ToolDefinition,
} from "../../engine/protocol/generation.ts";
import type { ChoiceEvent } from "../../inference/generate-choices.ts";
import type { InferenceRequest, RequestedFormat, ToolGrammar } from "../../inference/inference.ts";
import { decodeAudio, decodeImage } from "../../inference/media-data.ts";
import type {
  ChatCompletionMessage,
  ChatCompletionRequest,
  ChatCompletionToolCall,
  NamedTool,
} from "./chat-schema.ts";
import { customFunctions, encodeInput } from "./custom-tools.ts";
import { toFunctionResult, toFunctionTools, toLegacyCall, usesFunctions } from "./legacy-functions.ts";
import { toMaxTokens, unsupported } from "./openai-fields.ts";
import { toOutputFormat, ignoredVerbosity } from "./output-format.ts";
import { chatInput, textParts, toolDefinition } from "../chat-input.ts";
import { invalidField } from "../../http/input/common-fields.ts";
import {
  commonSettings,
  perChoice,
  thinkingFromTemplateFields,
  toChoices,
  toReasoningBudget,
  toStop,
} from "../request-settings.ts";
import { checkFormatWithTools } from "../structured-output.ts";

/** Returns one request per choice. */
export function toChatRequests(body: ChatCompletionRequest): InferenceRequest[] {
  if (body.modalities?.some((modality) => modality !== "text")) {
    throw unsupported("Only text output is supported.", "modalities");
  }
  const warnings = ignoredVerbosity(body.verbosity);
  const { tools, toolChoice, toolGrammars } = toTools(body);
  const format = toOutputFormat(body);
  const limit = chatLimit(body);
  checkFormatWithTools(format, tools.length > 0 && toolChoice !== "none");
  const request: InferenceRequest = {
    endpoint: "chat",
    ...commonSettings(body),
    isBuffered: !body.stream,
    input: chatInput(body.messages.map(toMessage), {
      continueLast: toContinueLast(body, format, toolChoice),
      tools,
      toolChoice,
      parallelToolCalls: usesFunctions(body) ? false : (body.parallel_tool_calls ?? true),
      ...thinkingFromTemplateFields(body),
    }),
    // The engine generates at least one token; see withoutText().
    maxTokens: limit === 0 ? 1 : toMaxTokens(limit),
    stop: toStop(body.stop),
    format,
    ...(toolGrammars.length > 0 && { toolGrammars }),
    logprobs: toLogprobs(body),
    timings: body.timings_per_token ?? false,
    ...toReasoningBudget(body),
    ...(warnings.length > 0 && { warnings }),
  };
  return perChoice(request, toChoices(body));
}

function toMessage(
  message: ChatCompletionMessage,
  index: number,
  messages: readonly ChatCompletionMessage[],
): ChatMessage {
  const param = `messages.${index}.content`;
  if (message.role === "user") {
    return { role: "user", content: toUserContent(message.content, param), name: message.name ?? undefined };
  }
  if (message.role === "assistant") {
    return {
      role: "assistant",
      content: textParts(message.content ?? message.refusal),
      reasoning: message.reasoning_content ?? undefined,
      toolCalls: message.function_call
        ? [toLegacyCall(message.function_call, index)]
        : message.tool_calls?.map(toToolCall),
      name: message.name ?? undefined,
    };
  }
  if (message.role === "function") return toFunctionResult(message, messages.slice(0, index));
  if (message.role === "tool") {
    return { role: "tool", content: toUserContent(message.content, param), toolCallId: message.tool_call_id };
  }
  return { role: "system", content: textParts(message.content), name: message.name ?? undefined };
}

function toUserContent(
  content: Extract<ChatCompletionMessage, { role: "user" }>["content"],
  param: string,
): ContentPart[] {
  if (content == null || typeof content === "string") return textParts(content);
  return content.map((part, at) => {
    if (part.type === "text") return part;
    if (part.type === "image_url") {
      const { image_url: image } = part;
      return typeof image === "string"
        ? { type: "image", data: decodeImage(image, `${param}.${at}.image_url`) }
        : { type: "image", data: decodeImage(image.url, `${param}.${at}.image_url.url`) };
    }
    if (part.type === "input_audio")
      return { type: "audio", data: decodeAudio(part.input_audio.data, `${param}.${at}.input_audio.data`) };
    throw unsupported("File input is not supported; send text, images or audio.", `${param}.${at}`);
  });
}

function toToolCall(call: ChatCompletionToolCall): ToolCall {
  const { id } = call;
  return call.type === "function"
    ? { id, ...call.function }
    : { id, name: call.custom.name, arguments: encodeInput(call.custom.input) };
}

function toTools(body: ChatCompletionRequest): {
  tools: ToolDefinition[];
  toolChoice: ToolChoice;
  toolGrammars: readonly ToolGrammar[];
} {
  const toolGrammars: ToolGrammar[] = [];
  if (usesFunctions(body) || body.function_call)
    return { ...toFunctionTools(body, body.tools ?? []), toolGrammars };
  const toFunction = customFunctions(toolGrammars);
  const toDefinition = (
    tool: NonNullable<ChatCompletionRequest["tools"]>[number],
    at: number,
  ): ToolDefinition => {
    if (tool.type === "custom") {
      const { format, ...custom } = tool.custom;
      const grammar = format?.type === "grammar" ? format.grammar : undefined;
      return toFunction({ ...custom, grammar });
    }
    return toolDefinition(tool.function, `tools.${at}.function.parameters`);
  };
  const tools = (body.tools ?? []).map(toDefinition);
  const choice = body.tool_choice ?? "auto";
  if (typeof choice === "string") return { tools, toolChoice: choice, toolGrammars };
  if (choice.type !== "allowed_tools") return { tools, toolChoice: { name: nameOf(choice) }, toolGrammars };
  const allowed = new Set(choice.allowed_tools.tools.map(nameOf));
  return {
    tools: tools.filter(({ name }) => allowed.has(name)),
    toolChoice: choice.allowed_tools.mode,
    toolGrammars,
  };
}

/**
 * True if the answer continues a final assistant message. OpenAI answers such a message with a new one; llama.cpp's
 * server continues it, and so does this server. But an answer with a format or a required tool call starts anew by
 * default, because agents send a finished answer to get it as JSON.
 */
function toContinueLast(
  { continue_final_message: requested, add_generation_prompt: addsPrompt, messages }: ChatCompletionRequest,
  format: RequestedFormat,
  choice: ToolChoice,
): boolean {
  if (addsPrompt !== false)
    return requested ?? (format.type === "text" && (choice === "auto" || choice === "none"));
  const last = messages.at(-1);
  if (requested !== false && last?.role === "assistant" && !last.tool_calls?.length && !last.function_call)
    return true;
  throw invalidField(
    "add_generation_prompt",
    "can be false only if the answer continues a final assistant message; leave it out.",
  );
}

function nameOf(tool: NamedTool): string {
  return tool.type === "function" ? tool.function.name : tool.custom.name;
}

/** Names of the custom tools, whose input is text. */
export function customNames({ tools }: ChatCompletionRequest): ReadonlySet<string> {
  return new Set(tools?.flatMap((tool) => (tool.type === "custom" ? tool.custom.name : [])));
}

function toLogprobs(body: ChatCompletionRequest): number | undefined {
  if (body.logprobs) return body.top_logprobs ?? body.n_probs ?? 0;
  if (body.n_probs) return body.n_probs;
  if (body.top_logprobs == null) return undefined;
  throw invalidField("top_logprobs", "requires logprobs to be true.");
}

/** Maximum number of tokens of the answer; -1 and undefined: no limit. */
export function chatLimit(body: ChatCompletionRequest): number | undefined {
  return body.max_completion_tokens ?? body.max_tokens ?? body.n_predict ?? undefined;
}

/** Removes the text of an answer with a limit of 0 tokens, for which the engine generates one token. */
export async function* withoutText(
  events: AsyncIterable<ChoiceEvent>,
): AsyncGenerator<ChoiceEvent, void, undefined> {
  for await (const event of events) {
    if (event.type === "prompt-progress") yield event;
    if (event.type !== "done") continue;
    yield { ...event, reason: "length", usage: { ...event.usage, completionTokens: 0, reasoningTokens: 0 } };
  }
}
