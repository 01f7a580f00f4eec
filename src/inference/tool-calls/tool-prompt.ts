import type {
  ChatMessage,
  ContentPart,
  ToolCall,
  ToolChoice,
  ToolDefinition,
} from "../../engine/protocol/generation.ts";
import type { ToolFormat } from "../../models/model.ts";

/**
 * Renders tools, calls and results as text in the messages, for models whose template does not support them: tools in
 * the system message, calls in assistant messages, and results in user messages, the only other role of every template.
 */
export function renderTools(
  messages: readonly ChatMessage[],
  tools: readonly ToolDefinition[],
  toolChoice: ToolChoice,
  format: ToolFormat,
): ChatMessage[] {
  const rendered: ChatMessage[] = [];
  for (const message of messages) {
    const last = rendered.at(-1);
    if (message.role !== "tool") rendered.push(withCallsAsText(message, format));
    else if (last?.role === "user" && isResult(last, format))
      last.content.push(...resultParts(message, format));
    else rendered.push({ role: "user", content: resultParts(message, format) });
  }
  if (tools.length === 0 || toolChoice === "none") return rendered;
  return withInstructions(rendered, describeTools(tools, toolChoice, format));
}

function withInstructions(messages: readonly ChatMessage[], instructions: string): ChatMessage[] {
  const [first, ...rest] = messages;
  if (first?.role !== "system") {
    return [{ role: "system", content: [{ type: "text", text: instructions }] }, ...messages];
  }
  return [{ ...first, content: withText(first.content, `\n\n${instructions}`) }, ...rest];
}

function describeTools(
  tools: readonly ToolDefinition[],
  toolChoice: ToolChoice,
  { callStart, callEnd, resultStart, resultEnd }: ToolFormat,
): string {
  const lines = tools.map(({ name, description, parameters }) =>
    JSON.stringify({ name, description, parameters }),
  );
  return [
    "These functions are at your disposal, each described by one line of JSON:",
    ...lines,
    "To call one, write exactly this, with the function's name and its arguments filled in:",
    `${callStart}{"name": "…", "arguments": {…}}${callEnd}`,
    `The result will be given to you between ${resultStart} and ${resultEnd}.`,
    necessity(toolChoice),
  ].join("\n");
}

function necessity(toolChoice: ToolChoice): string {
  if (typeof toolChoice === "object") return `Call the function ${toolChoice.name} now.`;
  return toolChoice === "required"
    ? "Call at least one of the functions now."
    : "Call a function only when it helps; otherwise answer in plain words.";
}

function withCallsAsText(message: ChatMessage, format: ToolFormat): ChatMessage {
  const { toolCalls, ...plain } = message;
  if (!toolCalls || toolCalls.length === 0) return { ...plain, content: [...plain.content] };
  const written = toolCalls.map((call) => writeCall(call, format)).join("\n");
  return { ...plain, content: withText(plain.content, written) };
}

function writeCall(call: ToolCall, { callStart, callEnd }: ToolFormat): string {
  return `${callStart}{"name": ${JSON.stringify(call.name)}, "arguments": ${call.arguments || "{}"}}${callEnd}`;
}

function resultParts(message: ChatMessage, { resultStart, resultEnd }: ToolFormat): ContentPart[] {
  const parts: ContentPart[] = [{ type: "text", text: resultStart }];
  for (const part of message.content) {
    if (part.type !== "text") parts.push(part);
    else parts.splice(0, parts.length, ...withText(parts, part.text));
  }
  return withText(parts, resultEnd);
}

function isResult(message: ChatMessage, { resultStart }: ToolFormat): boolean {
  const [first] = message.content;
  return first?.type === "text" && first.text.startsWith(resultStart);
}

/** Appends text to the last part, because the engine puts each part on a separate line. */
function withText(parts: readonly ContentPart[], text: string): ContentPart[] {
  const last = parts.at(-1);
  return last?.type === "text"
    ? [...parts.slice(0, -1), { type: "text", text: last.text + text }]
    : [...parts, { type: "text", text }];
}
