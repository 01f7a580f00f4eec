import { ServiceError } from "../errors/service-error.ts";
import type { Model } from "../models/model.ts";

/** Gap in a text, and the context for filling it. */
export interface InfillParts {
  readonly prefix: string;
  readonly suffix: string;
  /** Parts of other files, which come first in the prompt. */
  readonly extra?: readonly InfillFile[] | undefined;
  /** Beginning of the text in the gap. */
  readonly middle?: string | undefined;
}

export interface InfillFile {
  readonly filename: string;
  readonly text: string;
}

/** llama.cpp's names for a repository and a file without one. */
const DEFAULT_REPOSITORY = "myproject";
const DEFAULT_FILE = "filename";
/** Separator between files, for models without a token for it. */
const SNIPPET_SEPARATOR = "\n\n--- snippet ---\n\n";

/**
 * Builds the fill-in-the-middle prompt in the order prefix, suffix, middle, like llama.cpp and the training of the
 * models. Other files come first, in the repository format if the model has tokens for it.
 * @throws ServiceError unsupported_feature with param suffix if the vocabulary has no fill-in-the-middle tokens
 */
export function infillPrompt(
  { prefix, suffix, extra, middle = "" }: InfillParts,
  { alias, gguf: { infill } }: Pick<Model, "alias" | "gguf">,
): string {
  if (infill) {
    const files = extra === undefined ? "" : repositoryPrompt(extra, infill);
    return `${files}${infill.prefix}${prefix}${middle}${infill.suffix}${suffix}${infill.middle}`;
  }
  throw new ServiceError(
    "unsupported_feature",
    `"${alias}" cannot fill in the middle of a text: its vocabulary has no tokens for it. Choose a model that has, ` +
      "or put the text before into the prompt and leave the suffix out.",
    { param: "suffix" },
  );
}

function repositoryPrompt(
  files: readonly InfillFile[],
  { repository, file }: NonNullable<Model["gguf"]["infill"]>,
): string {
  const begin = repository === undefined ? "" : `${repository}${DEFAULT_REPOSITORY}\n`;
  const parts = files.map(({ filename, text }) =>
    file === undefined ? SNIPPET_SEPARATOR + text : `${file}${filename}\n${text}`,
  );
  return begin + parts.join("") + (file === undefined ? "" : `${file}${DEFAULT_FILE}\n`);
}
