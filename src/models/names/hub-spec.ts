import { invalidName, isHubPart, isRepoFile, isRevision } from "./name-rules.ts";
import { canonical, isQuantization } from "./quantization.ts";

/**
 * A model on the hub: `hf:owner/repo[:file-or-quant][@revision]`. Every part has been checked: no `..`, and no misplaced
 * separators.
 */
export interface HubSpec {
  readonly owner: string;
  readonly repo: string;
  /** Path of a GGUF file inside the repository (the first shard of a sharded one). Never set with `quant`. */
  readonly file?: string | undefined;
  /** Quantization in uppercase, such as "Q4_K_M"; the store picks the file. */
  readonly quant?: string | undefined;
  /** Branch, tag or commit; absent: main. */
  readonly revision?: string | undefined;
}

export const HUB_PREFIX = "hf:";

const FORM = "a hub spec has the form hf:owner/repository[:file.gguf or quantization][@revision]";

/**
 * Parses a hub spec, which begins with `hf:`. The text after the last `@` is the revision, unless it ends in .gguf, because
 * file names may contain `@`. Throws `invalid_model_name`.
 */
export function parseHubSpec(text: string): HubSpec {
  const { place, revision } = splitRevision(text.slice(HUB_PREFIX.length));
  const [repoPath = "", ...rest] = place.split(":");
  const [owner = "", repo = "", ...deeper] = repoPath.split("/");
  if (rest.length > 1 || deeper.length > 0 || !isHubPart(owner) || !isHubPart(repo))
    throw invalidName(text, FORM);
  if (revision !== undefined && !isRevision(revision)) {
    throw invalidName(text, `${JSON.stringify(revision)} is not the name of a branch, tag or commit`);
  }
  const [choice] = rest;
  return {
    owner,
    repo,
    ...(choice !== undefined && parseChoice(text, choice)),
    ...(revision !== undefined && { revision }),
  };
}

/** Separates `@revision` from the end of a name. */
export function splitRevision(text: string): { place: string; revision: string | undefined } {
  const at = text.lastIndexOf("@");
  if (at === -1 || /\.gguf$/i.test(text)) return { place: text, revision: undefined };
  return { place: text.slice(0, at), revision: text.slice(at + 1) };
}

function parseChoice(text: string, choice: string): Pick<HubSpec, "file"> | Pick<HubSpec, "quant"> {
  if (isQuantization(choice)) return { quant: canonical(choice) };
  if (/\.gguf$/i.test(choice) && isRepoFile(choice)) return { file: choice };
  throw invalidName(
    text,
    `${JSON.stringify(choice)} is neither a .gguf file of a repository nor a quantization such as Q4_K_M`,
  );
}
