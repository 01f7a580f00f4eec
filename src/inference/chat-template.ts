import type { ChatMessage, ToolCall } from "../engine/protocol/generation.ts";
import { tryJson } from "../json/json-values.ts";
import type { ModelSettings } from "../models/model.ts";
import type { TextTags } from "./stream-filters.ts";
import type { CallFormat } from "./tool-calls/written-call-parser.ts";

/** What is peculiar to the chat templates of a family, beyond what llama.cpp knows of them. */
export interface TemplateTraits {
  /** The template cannot show a message with several calls. */
  readonly oneCallPerMessage?: boolean;
  /** Stands before the text of an answer; llama.cpp leaves it out where a message goes on. */
  readonly textStart?: string;
  /** Stand around the text of an answer, where llama.cpp leaves them in it. */
  readonly textTags?: TextTags;
  /** An answer is text only behind markup of the template, which llama.cpp's grammars for a format have. */
  readonly wrapsText?: boolean;
  /** The token that ends a turn, where llama.cpp shows it as text. */
  readonly endOfTurn?: string;
  /** Ends the reasoning that the prompt has begun, where llama.cpp does not see it. */
  readonly reasoningEnd?: string;
  /** What the prompt has begun it with. */
  readonly reasoningStart?: string;
  /** Tags that may end reasoning; llama.cpp shows their beginnings as text, even if the reasoning goes on. */
  readonly echoedTags?: readonly string[];
  /** How calls are written, where llama.cpp's reader misses them or fails on other text. */
  readonly calls?: CallFormat;
}

interface Family extends TemplateTraits {
  /** Texts that only the family's templates have, in this order. */
  readonly template: readonly string[];
}

const FAMILIES: readonly Family[] = [
  {
    // Llama 3.1 to 3.3. llama.cpp takes any brace for the beginning of a call, and fails when it is not.
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
    // Mistral Small 3.2 and others of its time. With llama.cpp's grammar, the ids of their calls spoil what follows.
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
    // Granite 3: the template does not show how calls are written; llama.cpp hides their tag and shows the rest as text.
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
  // gpt-oss: the template shows only the first call of a message.
  { template: ["<|channel|>", "functions."], oneCallPerMessage: true, wrapsText: true },
  // Command R7B
  { template: ["<|START_RESPONSE|>"], textStart: "<|START_RESPONSE|>", wrapsText: true },
  {
    // DeepSeek V3.1 as published: an answer without reasoning is begun by the end of one.
    template: ["<｜Assistant｜></think>"],
    reasoningStart: "<think>",
    reasoningEnd: "</think>",
    endOfTurn: "<｜end▁of▁sentence｜>",
  },
  // Kimi K2 Thinking, whose calls may end its reasoning.
  {
    template: ["<|tool_calls_section_begin|>"],
    echoedTags: ["<|tool_calls_section_begin|>", "<|tool_call_begin|>"],
  },
  { template: ["<｜end▁of▁sentence｜>"], endOfTurn: "<｜end▁of▁sentence｜>" }, // DeepSeek
];

/** The traits of the family that a template belongs to; none for other families. */
export function traitsOf(template: string | undefined): TemplateTraits {
  return (template !== undefined && FAMILIES.find((family) => hasAll(template, family.template))) || {};
}

/** Whether a text has these, each behind the one before. It is looked through once: a model's file may have any template. */
function hasAll(text: string, parts: readonly string[]): boolean {
  let at = 0;
  return parts.every((part) => {
    const found = text.indexOf(part, at);
    at = found + part.length;
    return found >= 0;
  });
}

/** A message of text alone; none where there is no text. */
export function textMessage(role: ChatMessage["role"], text: string | undefined): ChatMessage[] {
  return text ? [{ role, content: [{ type: "text", text }] }] : [];
}

/** A chat with the model's own first messages (MESSAGE) behind its system prompt, which is the model's where it has none. */
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

/** Messages as the family of a template needs them. */
export function fittingMessages(
  messages: readonly ChatMessage[],
  { oneCallPerMessage = false, textStart }: TemplateTraits,
): readonly ChatMessage[] {
  const whole = messages.length > 1 && isEmpty(messages.at(-1)) ? messages.slice(0, -1) : messages;
  const single = oneCallPerMessage ? withOneCallEach(whole) : whole;
  const last = single.at(-1);
  if (textStart === undefined || last?.role !== "assistant") return single;
  const [first, ...rest] = last.content;
  const begun = first?.type === "text" ? [{ ...first, text: textStart + first.text }, ...rest] : last.content;
  return [...single.slice(0, -1), { ...last, content: begun }];
}

/** With nothing to go on with, llama.cpp would leave out that the assistant speaks now. */
function isEmpty(message: ChatMessage | undefined): boolean {
  if (message?.role !== "assistant" || message.reasoning || message.toolCalls?.length) return false;
  return message.content.every((part) => part.type === "text" && part.text === "");
}

/** Several calls in a message become several messages, each followed by its result. */
function withOneCallEach(messages: readonly ChatMessage[]): ChatMessage[] {
  const fitting: ChatMessage[] = [];
  const used = new Set<ChatMessage>();
  for (const [at, message] of messages.entries()) {
    const { toolCalls = [], ...said } = message;
    if (used.has(message)) continue;
    if (toolCalls.length < 2) {
      fitting.push(message);
      continue;
    }
    const behind = messages.slice(at + 1);
    const end = behind.findIndex(({ role }) => role !== "tool");
    const answers = end < 0 ? behind : behind.slice(0, end);
    for (const [index, call] of toolCalls.entries()) {
      const first = index === 0 ? said : { role: message.role, content: [] };
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
 * Messages with tool calls that a template can read: their arguments must be JSON. Empty arguments mean a function without
 * parameters; text that is not JSON, such as arguments that were cut off, becomes a JSON string.
 */
export function withReadableCalls(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.map((message) =>
    message.toolCalls ? { ...message, toolCalls: message.toolCalls.map(readable) } : message,
  );
}

function readable(call: ToolCall): ToolCall {
  if (call.arguments.trim() === "") return { ...call, arguments: "{}" };
  const isJson = tryJson(call.arguments) !== undefined;
  return isJson ? call : { ...call, arguments: JSON.stringify(call.arguments) };
}
