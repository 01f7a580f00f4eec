import { ServiceError } from "../../errors/service-error.ts";
import type { ChatMessage, GenerationRequest } from "../protocol/generation.ts";
import { completionResultSchema } from "./completion-chunk.ts";
import type { AcceptedResult } from "./loop-request.ts";

/** Stands for an image in the chat that tells what the template does; no template writes it by itself. */
const SENTINEL = "daybreak-ends-here";

/** Body of a request that makes llama.cpp render a chat whose content ends as it does after an image. */
export const PROBE_BODY = {
  stream: true,
  // The verbose form says what the prompt was.
  verbose: true,
  max_tokens: 1,
  cache_prompt: false,
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: SENTINEL },
        { type: "text", text: "" },
      ],
    },
  ],
} as const;

/** True when nothing but blanks follows the last image of a chat; llama.cpp aborts on a prompt that ends with one. */
export function endsWithImage({ input }: GenerationRequest): boolean {
  if (input.kind !== "chat") return false;
  const parts = input.messages.flatMap(({ content }: ChatMessage) => content);
  return parts.findLast((part) => part.type === "image" || part.text.trim() !== "")?.type === "image";
}

/**
 * Reads from one result of {@link PROBE_BODY} whether the template leaves the end of a content bare: it trims what is
 * behind it and adds nothing of its own.
 */
export function leavesEndBare(result: AcceptedResult): boolean {
  if (result.kind !== "data") return false;
  return completionResultSchema
    .parse(result.data)
    .some(({ __verbose: verbose }) => verbose?.prompt?.endsWith(SENTINEL) ?? false);
}

export function noTextAfterImage(): ServiceError {
  return new ServiceError(
    "invalid_parameter",
    "This model's chat template puts nothing after an image at the end of a chat, which the model cannot read; " +
      "add text after the image.",
    { param: "messages" },
  );
}
