import type { GenerationInput } from "../protocol/generation.ts";

/**
 * A text with about as many tokens as the prompt of a request, without its media: only llama.cpp knows what a chat template
 * makes of a conversation.
 */
export function promptText(input: GenerationInput): string {
  if (input.kind === "prompt") return input.prompt;
  const messages = input.messages.map(({ role, content, reasoning, toolCalls }) => {
    const texts = content.map((part) => (part.type === "text" ? part.text : ""));
    return [role, ...texts, reasoning, toolCalls];
  });
  return JSON.stringify(input.tools.length > 0 ? [input.tools, messages] : messages);
}
