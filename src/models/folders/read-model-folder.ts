import type { Dirent } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import { ServiceError, rethrowExhaustion } from "../../errors/service-error.ts";
import { listEntries, listNames } from "../../files/file-operations.ts";
import { realPathInside, repoOfFolder } from "../hub/cache/repo-cache.ts";
import { listCachedModels } from "../hub/cache/snapshots.ts";
import { chooseProjector, groupModels } from "../names/hub-spec.ts";
import { fileStem, shardOf, withoutQuantization } from "../names/model-file-names.ts";
import { hasInvisible } from "../names/name-rules.ts";
import type { FolderContents, FoundModel, SkippedModel } from "./found-model.ts";
import { readOllamaStore } from "./ollama-store.ts";

/** Subfolders with the models of folders such as ~/.ollama, so that users may name either. */
const MODEL_SUBFOLDERS = ["models", "hub"];

type ReadFolder = (folder: string) => Promise<FolderContents>;

/**
 * Reads the models in a folder: an Ollama store, a Hugging Face cache, or any folder of GGUF files such as LM Studio's.
 * Links must lead to files inside the folder.
 * @throws ServiceError model_file_not_found if there is no such folder
 */
export async function readModelFolder(folder: string): Promise<FolderContents & { readonly folder: string }> {
  const real = await realFolder(folder);
  for (const candidate of [real, ...MODEL_SUBFOLDERS.map((name) => path.join(real, name))]) {
    const read = await readerOf(candidate);
    if (read) return { folder: candidate, ...(await read(candidate)) };
  }
  return { folder: real, ...(await readPlainFolder(real)) };
}

/** Returns the reader for the layout of a known program; undefined for a folder of files. */
async function readerOf(folder: string): Promise<ReadFolder | undefined> {
  const names = await listNames(folder);
  if (names.includes("manifests") && names.includes("blobs")) return readOllamaStore;
  return names.some((name) => repoOfFolder(name) !== undefined) ? readHubCache : undefined;
}

async function realFolder(folder: string): Promise<string> {
  const real = await realpath(folder).catch(rethrowExhaustion);
  const isFolder = real !== undefined && (await stat(real)).isDirectory();
  if (isFolder) return real;
  throw new ServiceError("model_file_not_found", `There is no folder ${folder} that the daemon can read.`);
}

/** Reads a cache of the Hugging Face hub, which transformers, llama.cpp and others share. */
async function readHubCache(folder: string): Promise<FolderContents> {
  const models = (await listCachedModels(folder)).map(({ spec, repo, files, projector }) =>
    foundModel(spec, repo.split("/").at(-1) ?? repo, files, projector),
  );
  return { models, skipped: [] };
}

/** @param folder name that precedes that of a file without information about its model */
function foundModel(
  name: string,
  folder: string,
  [first = "", ...others]: readonly string[],
  projector: string | undefined,
): FoundModel {
  const files = [first, ...others] as const;
  const preferredName = modelName(first, folder);
  return { name, preferredName, files, projector, adapters: [], settings: [], notes: [] };
}

/** Maximum depth of subfolders; LM Studio nests publisher, repository and one or two more. */
const MAX_DEPTH = 8;
/** Maximum entries in all subfolders, so that naming a full disk fails quickly. */
const MAX_ENTRIES = 50_000;
/** File names without information about their model. */
const GENERIC_NAME = /^(?:ggml)?(?:model)?$/i;

/**
 * Reads a folder of GGUF files and its subfolders, such as LM Studio's publisher/repository/file.gguf. Shards are one
 * model, and a projector belongs to the model in the same folder. Hidden folders are left out.
 * @param folder its real path
 */
async function readPlainFolder(folder: string): Promise<FolderContents> {
  const listing = new FolderListing(folder);
  await listing.add("", 0);
  const byFolder = Map.groupBy(listing.files, (file) => path.posix.dirname(file));
  const models = [...byFolder].flatMap(([, files]) =>
    groupModels(files).map((shards) => toModel(folder, shards, files)),
  );
  const used = new Set(models.flatMap(({ files }) => files));
  const incomplete = listing.files
    .filter((file) => shardOf(file)?.index === 1 && !used.has(absolute(folder, file)))
    .map((name) => ({ name, reason: "some of its parts are missing" }));
  const safetensors = [...listing.safetensors]
    .filter((name) => !byFolder.has(name))
    .map((name) => ({
      name: name === "." ? path.basename(folder) : name,
      reason: "it is in Safetensors, not GGUF",
    }));
  return { models, skipped: [...listing.skipped, ...incomplete, ...safetensors] };
}

/** Returns a model name from the name of its file, prefixed by its folder if that is generic. */
function modelName(file: string, folder: string): string {
  const stem = fileStem(file);
  const isGeneric = GENERIC_NAME.test(withoutQuantization(stem).replaceAll(/[-._]/g, ""));
  return isGeneric ? `${folder}-${stem}` : stem;
}

function toModel(folder: string, shards: readonly string[], siblings: readonly string[]): FoundModel {
  const [first = ""] = shards;
  const projector = chooseProjector(siblings, first);
  const parentName = path.posix.basename(path.posix.dirname(first));
  return foundModel(
    first,
    parentName === "." ? path.basename(folder) : parentName,
    shards.map((file) => absolute(folder, file)),
    projector && absolute(folder, projector),
  );
}

function absolute(folder: string, relative: string): string {
  return path.join(folder, ...relative.split("/"));
}

/** GGUF files of a folder, as relative paths separated by `/`. */
class FolderListing {
  readonly files: string[] = [];
  /** Folders with Safetensors weights, as LM Studio has for MLX. */
  readonly safetensors = new Set<string>();
  readonly skipped: SkippedModel[] = [];
  readonly #root: string;
  #entries = 0;

  constructor(root: string) {
    this.#root = root;
  }

  async add(folder: string, depth: number): Promise<void> {
    const entries = await listEntries(absolute(this.#root, folder));
    this.#entries += entries.length;
    if (this.#entries > MAX_ENTRIES) {
      throw new ServiceError(
        "invalid_parameter",
        `${this.#root} has more than ${MAX_ENTRIES} files; name a folder inside it.`,
        { param: "from" },
      );
    }
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const relative = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (depth < MAX_DEPTH && !entry.name.startsWith(".") && !hasInvisible(entry.name))
          await this.add(relative, depth + 1);
      } else if (/\.gguf$/i.test(entry.name)) await this.#addFile(relative, entry);
      else if (/\.safetensors$/i.test(entry.name)) this.safetensors.add(path.posix.dirname(relative));
    }
  }

  async #addFile(name: string, entry: Dirent): Promise<void> {
    if (hasInvisible(entry.name)) {
      this.skipped.push({ name: JSON.stringify(name), reason: "its name has invisible characters" });
    } else if (entry.isFile()) this.files.push(name);
    else if (entry.isSymbolicLink()) {
      const real = await realPathInside(this.#root, absolute(this.#root, name));
      if (real === undefined)
        this.skipped.push({
          name,
          reason: "it is a link to nowhere, or out of the folder; name the folder it leads to",
        });
      else this.files.push(name);
    }
  }
}
