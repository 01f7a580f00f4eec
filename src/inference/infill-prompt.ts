import { ServiceError } from "../errors/service-error.ts";
import type { Model } from "../models/model.ts";

/** A gap in a text, and what helps to fill it. */
export interface InfillParts {
  readonly prefix: string;
  readonly suffix: string;
  /** Parts of other files, for the beginning of the prompt. */
  readonly extra?: readonly InfillFile[] | undefined;
  /** What the text in the gap begins with. */
  readonly middle?: string | undefined;
}

export interface InfillFile {
  readonly filename: string;
  readonly text: string;
}

/** What llama.cpp calls a repository and a file whose names nobody has said. */
const REPOSITORY = "myproject";
const FILE = "filename";
/** Between files, for models that have no token for it. */
const SNIPPET = "\n\n--- snippet ---\n\n";

/**
 * The prompt for the text between a prefix and a suffix, in the order prefix, suffix, middle, as in llama.cpp and in the
 * models' training; other files come first, by the pattern of repositories where the model has tokens for it.
 * @throws ServiceError unsupported_feature with param suffix when the vocabulary has no tokens for it
 */
export function infillPrompt(
  { prefix, suffix, extra, middle = "" }: InfillParts,
  { alias, gguf: { infill } }: Pick<Model, "alias" | "gguf">,
): string {
  if (infill) {
    const files = extra === undefined ? "" : repositoryOf(extra, infill);
    return `${files}${infill.prefix}${prefix}${middle}${infill.suffix}${suffix}${infill.middle}`;
  }
  throw new ServiceError(
    "unsupported_feature",
    `"${alias}" cannot fill in the middle of a text: its vocabulary has no tokens for it. Choose a model that has, ` +
      "or put the text before into the prompt and leave the suffix out.",
    { param: "suffix" },
  );
}

function repositoryOf(
  files: readonly InfillFile[],
  { repository, file }: NonNullable<Model["gguf"]["infill"]>,
): string {
  const begin = repository === undefined ? "" : `${repository}${REPOSITORY}\n`;
  const parts = files.map(({ filename, text }) =>
    file === undefined ? SNIPPET + text : `${file}${filename}\n${text}`,
  );
  return begin + parts.join("") + (file === undefined ? "" : `${file}${FILE}\n`);
}
