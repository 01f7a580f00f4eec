import { ServiceError } from "../../errors/service-error.ts";
import type { ChatMessage, GenerationRequest } from "../protocol/generation.ts";
import { toRequestJson } from "./build-request.ts";
import { type AcceptedResult, completionResultSchema } from "./loop-request.ts";
import type { WorkerActions } from "./wllama-api.ts";

/** Stands for media in the sample chat; no template contains this text. */
const SENTINEL = "daybreak-ends-here";

/** A request that makes llama.cpp render a chat that ends as it does after media. */
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

/** True when only whitespace follows the last image or recording of a chat. llama.cpp aborts on a prompt that ends with one. */
export function endsWithMedia({ input }: GenerationRequest): boolean {
  if (input.kind !== "chat") return false;
  const parts = input.messages.flatMap(({ content }: ChatMessage) => content);
  const last = parts.findLast((part) => part.type !== "text" || part.text.trim() !== "");
  return last !== undefined && last.type !== "text";
}

type RunCompletion = (
  body: WorkerActions["completion"],
  onResult: (result: AcceptedResult) => void,
  signal: AbortSignal,
) => Promise<void>;

/** Finds out once whether a model's chat template adds nothing after the content of the last message. */
export class MediaEnding {
  readonly #run: RunCompletion;
  #isBare: boolean | undefined;

  constructor(run: RunCompletion) {
    this.#run = run;
  }

  async isBare(signal: AbortSignal): Promise<boolean> {
    if (this.#isBare === undefined) {
      let isBare = false;
      const data_json = toRequestJson(SAMPLE_BODY);
      await this.#run(
        { _name: "cmpl_req", is_chat: true, data_json, files: [] },
        (result) => (isBare ||= endsWithContent(result)),
        signal,
      );
      this.#isBare = isBare;
    }
    return this.#isBare;
  }
}

function endsWithContent(result: AcceptedResult): boolean {
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
