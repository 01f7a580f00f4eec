import {
  canonical,
  chooseByQuantization,
  fileStem,
  isGguf,
  isQuantization,
  nameShards,
  quantizationOf,
  shardOf,
  withoutQuantization,
} from "./model-file-names.ts";
import { invalidName, isHubPart, isRepoFile, isRevision } from "./name-rules.ts";

/**
 * A model on the hub: `hf:owner/repo[:file-or-quant][@revision]`. Every part has been checked: no `..`, and no
 * misplaced separators.
 */
export interface HubSpec {
  readonly owner: string;
  readonly repo: string;
  /** Path of a GGUF file inside the repository (the first shard of a sharded one). Never set with `quant`. */
  readonly file?: string | undefined;
  /** Quantization in uppercase, such as "Q4_K_M", by which the store chooses the file. */
  readonly quant?: string | undefined;
  /** Branch, tag or commit; absent: main. */
  readonly revision?: string | undefined;
}

export const HUB_PREFIX = "hf:";

const SPEC_FORM = "a hub spec has the form hf:owner/repository[:file.gguf or quantization][@revision]";

/**
 * Parses a hub spec, which begins with `hf:`. The text after the last `@` is the revision, unless it ends in .gguf,
 * because file names may contain `@`. Throws `invalid_model_name`.
 */
export function parseHubSpec(text: string): HubSpec {
  const { name, revision } = splitRevision(text.slice(HUB_PREFIX.length));
  const [repoPath = "", ...choices] = name.split(":");
  const [owner = "", repo = "", ...surplus] = repoPath.split("/");
  if (choices.length > 1 || surplus.length > 0 || !isHubPart(owner) || !isHubPart(repo))
    throw invalidName(text, SPEC_FORM);
  if (revision !== undefined && !isRevision(revision)) {
    throw invalidName(text, `${JSON.stringify(revision)} is not the name of a branch, tag or commit`);
  }
  const [choice] = choices;
  return {
    owner,
    repo,
    ...(choice !== undefined && parseChoice(text, choice)),
    ...(revision !== undefined && { revision }),
  };
}

/** Splits `@revision` off the end of a name. */
export function splitRevision(text: string): { name: string; revision: string | undefined } {
  const at = text.lastIndexOf("@");
  if (at === -1 || isGguf(text)) return { name: text, revision: undefined };
  return { name: text.slice(0, at), revision: text.slice(at + 1) };
}

function parseChoice(text: string, choice: string): Pick<HubSpec, "file"> | Pick<HubSpec, "quant"> {
  if (isQuantization(choice)) return { quant: canonical(choice) };
  if (isGguf(choice) && isRepoFile(choice)) return { file: choice };
  throw invalidName(
    text,
    `${JSON.stringify(choice)} is neither a .gguf file of a repository nor a quantization such as Q4_K_M`,
  );
}

/** Words in the names of GGUF files that accompany a model. */
const SIDECAR_WORDS = ["mmproj", "imatrix", "ggml-vocab"] as const;

/**
 * Names of draft heads for speculative decoding: with a lowercase prefix, or `-MTP` at the end. Models with a built-in
 * head have `MTP` in the middle of their names.
 */
const DRAFT_HEAD = /(?:^|[-._])(?:mtp|eagle3|dflash|dspark)-|-MTP\.gguf$/;

/** Preferred quantizations of projectors, smaller files first: eight bits are as good as more. */
const PROJECTOR_QUANTS = ["Q8_0", "F16", "BF16", "F32"] as const;

/**
 * Groups a repository's paths (separated by `/`) into complete models, each as its shards in order or as one file.
 * Leaves out models with missing shards, projectors, importance matrices and draft heads. Simpler paths come first:
 * less nested, then shorter, then alphabetically.
 */
export function groupModels(paths: readonly string[]): string[][] {
  const present = new Set(paths);
  return paths
    .filter(isModelFile)
    .map((path) => completeModel(path, present))
    .filter((shards) => shards !== undefined)
    .toSorted(([a = ""], [b = ""]) => depth(a) - depth(b) || a.length - b.length || (a < b ? -1 : 1));
}

/**
 * Chooses the files of the model that a spec means among a repository's paths: all shards in order, or one file. The
 * spec names a file by its path or name; any shard works, and case is ignored if there is no exact match. A
 * quantization is matched by the file names. Undefined if nothing matches.
 */
export function chooseModelFiles(
  paths: readonly string[],
  { file, quant }: Pick<HubSpec, "file" | "quant">,
): string[] | undefined {
  const models = groupModels(paths);
  if (file === undefined) return chooseByQuantization(models, ([first = ""]) => first, quant);
  const wanted = file.toLowerCase();
  return (
    models.find((shards) => shards.includes(file)) ??
    models.find((shards) => shards.some((shard) => baseName(shard) === file)) ??
    models.find((shards) => shards.some((shard) => shard.toLowerCase() === wanted))
  );
}

/**
 * Chooses the projector of a model among a repository's paths; undefined if there is none, or if all belong to other
 * models of the repository.
 */
export function chooseProjector(paths: readonly string[], modelFile: string): string | undefined {
  const model = plainName(modelFile);
  const isOnlyModel = new Set(groupModels(paths).map(([first = ""]) => plainName(first))).size <= 1;
  const candidates = paths
    .filter(isProjector)
    .map((path) => ({ path, name: plainName(path) }))
    .filter(({ name }) => isOnlyModel || model.includes(name) || name === "model")
    .toSorted(
      (a, b) =>
        sharedFolders(b.path, modelFile) - sharedFolders(a.path, modelFile) ||
        matchLength(b.name, model) - matchLength(a.name, model) ||
        quantRank(a.path) - quantRank(b.path) ||
        (a.path < b.path ? -1 : 1),
    );
  return candidates[0]?.path;
}

function isProjector(path: string): boolean {
  return isGguf(path) && baseName(path).toLowerCase().includes("mmproj");
}

function isModelFile(path: string): boolean {
  const name = baseName(path);
  const lower = name.toLowerCase();
  return isGguf(path) && !SIDECAR_WORDS.some((word) => lower.includes(word)) && !DRAFT_HEAD.test(name);
}

/** Returns the shards of the model whose first file this is; undefined for a later shard, or if one is missing. */
function completeModel(path: string, present: ReadonlySet<string>): string[] | undefined {
  if ((shardOf(path)?.index ?? 1) !== 1) return undefined;
  const shards: string[] = [];
  for (const shard of nameShards(path)) {
    if (!present.has(shard)) return undefined;
    shards.push(shard);
  }
  return shards;
}

/** Returns a file's name without its kind, quantization and shard number. */
function plainName(path: string): string {
  return withoutQuantization(fileStem(path))
    .toLowerCase()
    .replace("mmproj", "")
    .replaceAll(/[-._]+/g, "-")
    .replaceAll(/^-|-$/g, "");
}

function matchLength(projector: string, model: string): number {
  return model.includes(projector) ? projector.length : -1;
}

function sharedFolders(a: string, b: string): number {
  const [left, right] = [a.split("/").slice(0, -1), b.split("/").slice(0, -1)];
  const different = left.findIndex((folder, at) => folder !== right[at]);
  return different === -1 ? left.length : different;
}

function quantRank(path: string): number {
  const rank = PROJECTOR_QUANTS.findIndex((quant) => quant === quantizationOf(path));
  return rank === -1 ? PROJECTOR_QUANTS.length : rank;
}

function depth(path: string): number {
  return path.split("/").length;
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
