import type { ChatMessage, ChatSettings, TextFile } from "./conversation.ts";

/** Alternatives that are shown for each token. */
const ALTERNATIVES = 5;

/** A tool as requests offer it. */
interface OfferedTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly parameters: object;
}

/**
 * The body of a request that continues a branch: it answers its last message, or goes on with it if that is an answer.
 * @param shown - the branch, the first message first
 * @throws Error when the format of the settings is not JSON
 */
export function chatRequest(
  shown: readonly ChatMessage[],
  settings: ChatSettings,
  tools: readonly OfferedTool[] = [],
): object {
  const { system = "", format, logprobs, stop, ...sampling } = settings;
  const asked = shown.map(wireMessage);
  return {
    messages: system.trim() === "" ? asked : [{ role: "system", content: system }, ...asked],
    ...sampling,
    ...(stop && stop.length > 0 && { stop }),
    ...(format !== undefined && { format: format === "json" ? format : parseSchema(format) }),
    ...(logprobs === true && { logprobs: ALTERNATIVES }),
    ...(tools.length > 0 && { tools: tools.map((tool) => ({ type: "function", function: tool })) }),
  };
}

/** @throws Error with a message for people */
export function parseSchema(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch (error) {
    throw new Error("The JSON Schema of the settings is not valid JSON. Mend it, or choose another format.", {
      cause: error,
    });
  }
  throw new Error(
    'A JSON Schema is an object such as {"type": "object"}. Mend it, or choose another format.',
  );
}

function wireMessage(message: ChatMessage): object {
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

/** A file in a prompt: its name, and its text between fences that it does not contain. */
function fileText({ name, text }: TextFile): string {
  let fence = "```";
  while (text.includes(fence)) fence += "`";
  return `File: ${name}\n${fence}\n${text}\n${fence}`;
}
