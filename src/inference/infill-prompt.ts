import { ServiceError } from "../errors/service-error.ts";
import type { Model } from "../models/model.ts";

/**
 * The prompt for the text between a prefix and a suffix, in the order prefix, suffix, middle, as in llama.cpp and in the
 * models' training.
 * @throws ServiceError unsupported_feature with param suffix when the vocabulary has no tokens for it
 */
export function infillPrompt(
  { prefix, suffix }: { readonly prefix: string; readonly suffix: string },
  { alias, gguf: { infill } }: Pick<Model, "alias" | "gguf">,
): string {
  if (infill) return infill.prefix + prefix + infill.suffix + suffix + infill.middle;
  throw new ServiceError(
    "unsupported_feature",
    `"${alias}" cannot fill in the middle of a text: its vocabulary has no tokens for it. Choose a model that has, ` +
      "or put the text before into the prompt and leave the suffix out.",
    { param: "suffix" },
  );
}
