import type {
  ChatMessage,
  ContentPart,
  ToolCall,
  ToolChoice,
  ToolDefinition,
} from "../../engine/protocol/generation.ts";
import type { ToolFormat } from "../../models/model.ts";

/**
 * Writes tools, calls and results into the messages as text, for models whose template knows none: the tools
 * go into the system message, earlier calls into the assistant's text, results into user messages (which is
 * the only role besides that every template has).
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
  const part: ContentPart = { type: "text", text: instructions };
  if (first?.role !== "system") return [{ role: "system", content: [part] }, ...messages];
  return [{ ...first, content: [...first.content, { type: "text", text: "\n\n" }, part] }, ...rest];
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
  return { ...plain, content: [...plain.content, { type: "text", text: written }] };
}

function writeCall(call: ToolCall, { callStart, callEnd }: ToolFormat): string {
  return `${callStart}{"name": ${JSON.stringify(call.name)}, "arguments": ${call.arguments || "{}"}}${callEnd}`;
}

function resultParts(message: ChatMessage, { resultStart, resultEnd }: ToolFormat): ContentPart[] {
  return [{ type: "text", text: resultStart }, ...message.content, { type: "text", text: resultEnd }];
}

function isResult(message: ChatMessage, { resultStart }: ToolFormat): boolean {
  const [first] = message.content;
  return first?.type === "text" && first.text === resultStart;
}
