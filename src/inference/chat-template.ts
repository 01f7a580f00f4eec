import type { ChatMessage, ToolCall } from "../engine/protocol/generation.ts";
import { tryJson } from "../json/json-values.ts";
import type { ModelSettings } from "../models/model.ts";
import type { TextTags } from "./stream-filters.ts";
import type { CallFormat } from "./tool-calls/written-call-parser.ts";

/** Peculiarities of a family's chat templates that llama.cpp does not handle. */
export interface TemplateTraits {
  /** True if the template cannot render a message with several calls. */
  readonly oneCallPerMessage?: boolean;
  /** Markup before the text of an answer, which llama.cpp omits when a message is continued. */
  readonly textStart?: string;
  /** Tags around the text of an answer, which llama.cpp does not remove. */
  readonly textTags?: TextTags;
  /** True if the text of an answer follows markup, which only llama.cpp's own grammars of schemas contain. */
  readonly wrapsText?: boolean;
  /** End-of-turn token that llama.cpp returns as text. */
  readonly endOfTurn?: string;
  /** End tag of reasoning that the prompt opens, which llama.cpp does not recognize. */
  readonly reasoningEnd?: string;
  /** Start tag of that reasoning. */
  readonly reasoningStart?: string;
  /** Tags that may end reasoning; llama.cpp returns their beginnings as text even if the reasoning continues. */
  readonly echoedTags?: readonly string[];
  /** Format of tool calls that llama.cpp's parser misses or that make it fail on other text. */
  readonly calls?: CallFormat;
}

interface Family extends TemplateTraits {
  /** Strings by which the family's templates are recognized, in this order. */
  readonly template: readonly string[];
}

const FAMILIES: readonly Family[] = [
  {
    // Llama 3.1 to 3.3. llama.cpp takes any brace for the beginning of a call, and fails if it is not.
    template: ["only supports single tool-calls at once"],
    oneCallPerMessage: true,
    calls: {
      heads: [
        ["<|python_tag|>", '{"name":"', "NAME", '","parameters":'],
        ['{"name":"', "NAME", '","parameters":'],
        ['{"type":"function","name":"', "NAME", '","parameters":'],
      ],
      tail: "};",
      isTagged: false,
    },
  },
  {
    // Mistral Small 3.2 and its contemporaries. With llama.cpp's grammar, call ids corrupt the text after them.
    template: ["[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"],
    calls: {
      heads: [
        ["[TOOL_CALLS]", "NAME", "[CALL_ID]", "ID", "[ARGS]"],
        ["[TOOL_CALLS]", "NAME", "[ARGS]"],
      ],
      tail: "",
      isTagged: true,
    },
  },
  {
    // Granite 3. The template has no format of calls; llama.cpp removes their tag and returns the rest as text.
    template: ["<|tool_call|>", "list of tools"],
    textTags: { start: "<response>", end: "</response>" },
    calls: {
      heads: [
        ["<|tool_call|>", '[{"name":"', "NAME", '","arguments":'],
        ['[{"name":"', "NAME", '","arguments":'],
        ['{"name":"', "NAME", '","arguments":'],
      ],
      tail: "},]",
      isTagged: false,
    },
  },
  // gpt-oss. The template renders only the first call of a message.
  { template: ["<|channel|>", "functions."], oneCallPerMessage: true, wrapsText: true },
  // Command R7B
  { template: ["<|START_RESPONSE|>"], textStart: "<|START_RESPONSE|>", wrapsText: true },
  {
    // DeepSeek V3.1 as published. Without reasoning, the prompt ends with the end tag of reasoning.
    template: ["<｜Assistant｜></think>"],
    reasoningStart: "<think>",
    reasoningEnd: "</think>",
    endOfTurn: "<｜end▁of▁sentence｜>",
  },
  // Kimi K2 Thinking. A call may end its reasoning.
  {
    template: ["<|tool_calls_section_begin|>"],
    echoedTags: ["<|tool_calls_section_begin|>", "<|tool_call_begin|>"],
  },
  { template: ["<｜end▁of▁sentence｜>"], endOfTurn: "<｜end▁of▁sentence｜>" }, // DeepSeek
];

/** Returns the traits of a template's family; empty if the family is unknown. */
export function traitsOf(template: string | undefined): TemplateTraits {
  return (
    (template !== undefined && FAMILIES.find((family) => containsInOrder(template, family.template))) || {}
  );
}

/** True if a text contains these strings in order. Takes one pass, as a model file may have a template of any size. */
function containsInOrder(text: string, parts: readonly string[]): boolean {
  let at = 0;
  return parts.every((part) => {
    const found = text.indexOf(part, at);
    at = found + part.length;
    return found >= 0;
  });
}

/** Returns a message with only text, or none if the text is empty. */
export function textMessage(role: ChatMessage["role"], text: string | undefined): ChatMessage[] {
  return text ? [{ role, content: [{ type: "text", text }] }] : [];
}

/**
 * Inserts the model's first messages (MESSAGE of a Modelfile) after the system prompt, the model's if the chat has
 * none.
 */
export function withFirstMessages(
  messages: readonly ChatMessage[],
  { messages: first = [], system }: Pick<ModelSettings, "messages" | "system">,
): readonly ChatMessage[] {
  if (first.length === 0) return messages;
  const begin = messages.findIndex(({ role }) => role !== "system");
  const leading = messages.slice(0, begin < 0 ? messages.length : begin);
  const hasSystem = messages.some(({ role }) => role === "system");
  return [
    ...(hasSystem ? leading : textMessage("system", system)),
    ...first.flatMap(({ role, content }) => textMessage(role, content)),
    ...messages.slice(leading.length),
  ];
}

/** Adapts messages to the limits of a template's family. */
export function messagesForTemplate(
  messages: readonly ChatMessage[],
  { oneCallPerMessage = false, textStart }: TemplateTraits,
): readonly ChatMessage[] {
  const complete = messages.length > 1 && isEmpty(messages.at(-1)) ? messages.slice(0, -1) : messages;
  const single = oneCallPerMessage ? withOneCallPerMessage(complete) : complete;
  const last = single.at(-1);
  if (textStart === undefined || last?.role !== "assistant") return single;
  const [first, ...rest] = last.content;
  const continued =
    first?.type === "text" ? [{ ...first, text: textStart + first.text }, ...rest] : last.content;
  return [...single.slice(0, -1), { ...last, content: continued }];
}

/** True for an assistant message with no content: llama.cpp would omit the generation prompt for it. */
function isEmpty(message: ChatMessage | undefined): boolean {
  if (message?.role !== "assistant" || message.reasoning || message.toolCalls?.length) return false;
  return message.content.every((part) => part.type === "text" && part.text === "");
}

/** Splits a message with several calls into one message per call, each followed by its result. */
function withOneCallPerMessage(messages: readonly ChatMessage[]): ChatMessage[] {
  const fitting: ChatMessage[] = [];
  const used = new Set<ChatMessage>();
  for (const [at, message] of messages.entries()) {
    const { toolCalls = [], ...plain } = message;
    if (used.has(message)) continue;
    if (toolCalls.length < 2) {
      fitting.push(message);
      continue;
    }
    const behind = messages.slice(at + 1);
    const end = behind.findIndex(({ role }) => role !== "tool");
    const answers = end < 0 ? behind : behind.slice(0, end);
    for (const [index, call] of toolCalls.entries()) {
      const first = index === 0 ? plain : { role: message.role, content: [] };
      fitting.push({ ...first, toolCalls: [call] });
      const result = answers.find(({ toolCallId }) => toolCallId === call.id);
      if (!result || used.has(result)) continue;
      used.add(result);
      fitting.push(result);
    }
  }
  return fitting;
}

/**
 * Makes the arguments of tool calls valid JSON, which templates require. Empty arguments become `{}`; text that is not
 * JSON, such as truncated arguments, becomes a JSON string.
 */
export function withJsonCalls(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.map((message) =>
    message.toolCalls ? { ...message, toolCalls: message.toolCalls.map(withJsonArguments) } : message,
  );
}

function withJsonArguments(call: ToolCall): ToolCall {
  if (call.arguments.trim() === "") return { ...call, arguments: "{}" };
  const isJson = tryJson(call.arguments) !== undefined;
  return isJson ? call : { ...call, arguments: JSON.stringify(call.arguments) };
}
