import { isRecord } from "../../json/json-values.ts";
import type { ChatMessage, ChatSettings, TextFile } from "./conversation.ts";

/** Alternatives per token that are requested. */
const TOP_LOGPROBS = 5;

interface OfferedTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: object;
}

/**
 * Builds the body of POST /api/chat. The model answers the last message, or continues it if it is an answer.
 * @param branch - messages, oldest first
 * @throws Error if the JSON Schema in the settings is invalid
 */
export function chatRequest(
  branch: readonly ChatMessage[],
  settings: ChatSettings,
  tools: readonly OfferedTool[] = [],
): object {
  const { system = "", format, logprobs, stop, ...sampling } = settings;
  const messages = branch.map(toRequestMessage);
  return {
    messages: system.trim() === "" ? messages : [{ role: "system", content: system }, ...messages],
    ...sampling,
    ...(stop && stop.length > 0 && { stop }),
    ...(format !== undefined && { format: format === "json" ? format : parseSchema(format) }),
    ...(logprobs === true && { logprobs: TOP_LOGPROBS }),
    ...(tools.length > 0 && { tools: tools.map((tool) => ({ type: "function", function: tool })) }),
  };
}

/** @throws Error with a message for the user */
export function parseSchema(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value)) return value;
  } catch (error) {
    throw new Error("The JSON Schema of the settings is not valid JSON. Mend it, or choose another format.", {
      cause: error,
    });
  }
  throw new Error(
    'A JSON Schema is an object such as {"type": "object"}. Mend it, or choose another format.',
  );
}

function toRequestMessage(message: ChatMessage): object {
  const { role, content, images = [], files = [], toolCalls = [], callId } = message;
  return {
    role,
    content: [...files.map(fileText), content].join("\n\n"),
    ...(images.length > 0 && { images: images.map((url) => url.slice(url.indexOf(",") + 1)) }),
    ...(toolCalls.length > 0 && {
      tool_calls: toolCalls.map(({ id, name, arguments: text }) => ({
        id,
        function: { name, arguments: text },
      })),
    }),
    ...(callId !== undefined && { tool_call_id: callId }),
  };
}

/**
 * Formats a file for the prompt: its name, then its text in a fenced block with a fence that the text does not contain.
 */
function fileText({ name, text }: TextFile): string {
  let fence = "```";
  while (text.includes(fence)) fence += "`";
  return `File: ${name}\n${fence}\n${text}\n${fence}`;
}
