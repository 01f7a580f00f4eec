import { ServiceError } from "../../errors/service-error.ts";
import type { ChatMessage, GenerationRequest } from "../protocol/generation.ts";
import { toRequestJson } from "./build-request.ts";
import { type AcceptedResult, completionResultSchema } from "./loop-request.ts";
import type { ServerRequests } from "./server-requests.ts";

/** Text in the place of media in the sample chat; no template contains it. */
const SENTINEL = "daybreak-ends-here";

/** A request for which llama.cpp renders a chat with the same end as one that ends with media. */
const SAMPLE_BODY = {
  stream: true,
  // Verbose answers contain the prompt.
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

/**
 * True if only whitespace follows the last image or recording of a chat. Such a prompt needs a check, because llama.cpp
 * aborts on a prompt that ends with media.
 */
export function endsWithMedia({ input }: GenerationRequest): boolean {
  if (input.kind !== "chat") return false;
  const parts = input.messages.flatMap(({ content }: ChatMessage) => content);
  const last = parts.findLast((part) => part.type !== "text" || part.text.trim() !== "");
  return last !== undefined && last.type !== "text";
}

/** Tests once if a model's chat template adds nothing after the content of the last message. */
export class TemplateEndingProbe {
  readonly #requests: ServerRequests;
  #templateEndsWithContent: boolean | undefined;

  constructor(requests: ServerRequests) {
    this.#requests = requests;
  }

  async templateEndsWithContent(signal: AbortSignal): Promise<boolean> {
    if (this.#templateEndsWithContent === undefined) {
      let templateEndsWithContent = false;
      const data_json = toRequestJson(SAMPLE_BODY);
      await this.#requests.run(
        "completion",
        { _name: "cmpl_req", is_chat: true, data_json, files: [] },
        (result) => (templateEndsWithContent ||= promptEndsWithContent(result)),
        signal,
      );
      this.#templateEndsWithContent = templateEndsWithContent;
    }
    return this.#templateEndsWithContent;
  }
}

function promptEndsWithContent(result: AcceptedResult): boolean {
  if (result.kind !== "data") return false;
  return completionResultSchema
    .parse(result.data)
    .some(({ __verbose: verbose }) => verbose?.prompt?.endsWith(SENTINEL) ?? false);
}

export function noTextAfterMedia(): ServiceError {
  return new ServiceError(
    "invalid_parameter",
    "The model cannot process a chat that ends with an image or a recording, because its chat template adds nothing after " +
      "it; add text after it.",
    { param: "messages" },
  );
}
