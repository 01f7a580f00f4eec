import { ServiceError } from "../../errors/service-error.ts";
import type { ChatMessage, GenerationRequest } from "../protocol/generation.ts";
import { toRequestJson } from "./build-request.ts";
import { completionResultSchema } from "./completion-chunk.ts";
import type { AcceptedResult } from "./loop-request.ts";
import type { WorkerActions } from "./wllama-api.ts";

/** Stands for an image in the sample chat; no template contains this text. */
const SENTINEL = "daybreak-ends-here";

/** A request that makes llama.cpp render a chat that ends as it does after an image. */
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

/** True when only whitespace follows the last image of a chat. llama.cpp aborts on a prompt that ends with an image. */
export function endsWithImage({ input }: GenerationRequest): boolean {
  if (input.kind !== "chat") return false;
  const parts = input.messages.flatMap(({ content }: ChatMessage) => content);
  return parts.findLast((part) => part.type === "image" || part.text.trim() !== "")?.type === "image";
}

type RunCompletion = (
  body: WorkerActions["completion"],
  onResult: (result: AcceptedResult) => void,
  signal: AbortSignal,
) => Promise<void>;

/** Finds out once whether a model's chat template adds nothing after the content of the last message. */
export class ImageEnding {
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

export function noTextAfterImage(): ServiceError {
  return new ServiceError(
    "invalid_parameter",
    "The model cannot process a chat that ends with an image, because its chat template adds nothing after it; " +
      "add text after the image.",
    { param: "messages" },
  );
}
