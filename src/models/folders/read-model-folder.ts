import type { Dirent } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { ServiceError, throwExhaustion } from "../../errors/service-error.ts";
import { listNames } from "../../files/file-operations.ts";
import { realPathInside, repoOfFolder } from "../hub/cache/repo-cache.ts";
import { listCachedModels } from "../hub/cache/snapshots.ts";
import { chooseProjector, groupModels } from "../names/hub-spec.ts";
import { fileStem, shardOf, withoutQuantization } from "../names/model-file-names.ts";
import { hasInvisible } from "../names/name-rules.ts";
import type { FolderContents, FoundModel, LeftOut } from "./found-model.ts";
import { readOllamaStore } from "./ollama-store.ts";

/** Folders that people name for the one inside them that has the models, such as ~/.ollama. */
const WRAPPED = ["models", "hub"];

type ReadFolder = (folder: string) => Promise<FolderContents>;

/**
 * Reads the models in a folder: Ollama's, the Hugging Face cache, or any with GGUF files, as LM Studio's. Links are only
 * followed to files inside it.
 * @throws ServiceError model_file_not_found when there is no such folder
 */
export async function readModelFolder(folder: string): Promise<FolderContents & { readonly folder: string }> {
  const real = await realFolder(folder);
  for (const candidate of [real, ...WRAPPED.map((name) => path.join(real, name))]) {
    const read = await readerOf(candidate);
    if (read) return { folder: candidate, ...(await read(candidate)) };
  }
  return { folder: real, ...(await readPlainFolder(real)) };
}

/** The reader of a program's own layout; undefined for a plain folder. */
async function readerOf(folder: string): Promise<ReadFolder | undefined> {
  const names = await listNames(folder);
  if (names.includes("manifests") && names.includes("blobs")) return readOllamaStore;
  return names.some((name) => repoOfFolder(name) !== undefined) ? readHubCache : undefined;
}

async function realFolder(folder: string): Promise<string> {
  const real = await realpath(folder).catch(throwExhaustion);
  const isFolder = real !== undefined && (await stat(real)).isDirectory();
  if (isFolder) return real;
  throw new ServiceError("model_file_not_found", `There is no folder ${folder} that the daemon can read.`);
}

/** Reads the cache of the Hugging Face hub, which transformers, llama.cpp and others share. */
async function readHubCache(folder: string): Promise<FolderContents> {
  const models = (await listCachedModels(folder)).map(
    ({ spec, repo, files, projector }): FoundModel | undefined => {
      const [first, ...others] = files;
      if (first === undefined) return undefined;
      const wish = fileName(first, repo.split("/").at(-1) ?? repo);
      return {
        name: spec,
        wish,
        files: [first, ...others],
        projector,
        adapters: [],
        settings: [],
        notes: [],
      };
    },
  );
  return { models: models.filter((model) => model !== undefined), leftOut: [] };
}

/** LM Studio nests publisher and repository, and repositories nest one or two more. */
const MAX_DEPTH = 8;
/** Far more than folders of models have; whoever names a whole disk does not wait for its end. */
const MAX_ENTRIES = 50_000;
/** Names of files that say nothing of their model. */
const NAMELESS = /^(?:ggml)?(?:model)?$/i;

/**
 * Reads a folder of GGUF files and its subfolders, such as LM Studio's publisher/repository/file.gguf: shards make one
 * model, and a projector belongs to the model beside it. Hidden folders are left out.
 * @param folder its real path
 */
async function readPlainFolder(folder: string): Promise<FolderContents> {
  const listing = new Listing(folder);
  await listing.add("", 0);
  const byFolder = Map.groupBy(listing.files, (file) => path.posix.dirname(file));
  const models = [...byFolder].flatMap(([, files]) =>
    groupModels(files).map((shards) => toModel(folder, shards, files)),
  );
  const used = new Set(models.flatMap(({ files }) => files));
  const broken = listing.files
    .filter((file) => shardOf(file)?.index === 1 && !used.has(absolute(folder, file)))
    .map((name) => ({ name, reason: "some of its parts are missing" }));
  const foreign = [...listing.safetensors]
    .filter((name) => !byFolder.has(name))
    .map((name) => ({
      name: name === "." ? path.basename(folder) : name,
      reason: "it is in Safetensors, not GGUF",
    }));
  return { models, leftOut: [...listing.leftOut, ...broken, ...foreign] };
}

/** The name that a file gives to its model; that of its folder as well where it says nothing. */
function fileName(file: string, folder: string): string {
  const stem = fileStem(file);
  const isNameless = NAMELESS.test(withoutQuantization(stem).replaceAll(/[-._]/g, ""));
  return isNameless ? `${folder}-${stem}` : stem;
}

function toModel(folder: string, shards: readonly string[], siblings: readonly string[]): FoundModel {
  const [first = "", ...others] = shards;
  const projector = chooseProjector(siblings, first);
  const own = path.posix.basename(path.posix.dirname(first));
  return {
    name: first,
    wish: fileName(first, own === "." ? path.basename(folder) : own),
    files: [absolute(folder, first), ...others.map((file) => absolute(folder, file))],
    projector: projector && absolute(folder, projector),
    adapters: [],
    settings: [],
    notes: [],
  };
}

function absolute(folder: string, relative: string): string {
  return path.join(folder, ...relative.split("/"));
}

/** The GGUF files of a folder, as paths relative to it, separated by `/`. */
class Listing {
  readonly files: string[] = [];
  /** The folders that have weights in Safetensors, as LM Studio has for MLX. */
  readonly safetensors = new Set<string>();
  readonly leftOut: LeftOut[] = [];
  readonly #root: string;
  #entries = 0;

  constructor(root: string) {
    this.#root = root;
  }

  async add(folder: string, depth: number): Promise<void> {
    const entries = await this.#read(folder);
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
      this.leftOut.push({ name: JSON.stringify(name), reason: "its name has invisible characters" });
    } else if (entry.isFile()) this.files.push(name);
    else if (entry.isSymbolicLink()) {
      const real = await realPathInside(this.#root, absolute(this.#root, name));
      if (real === undefined)
        this.leftOut.push({
          name,
          reason: "it is a link to nowhere, or out of the folder; name the folder it leads to",
        });
      else this.files.push(name);
    }
  }

  /** One that cannot be read is empty. */
  async #read(folder: string): Promise<Dirent[]> {
    try {
      return await readdir(absolute(this.#root, folder), { withFileTypes: true });
    } catch (error) {
      throwExhaustion(error);
      return [];
    }
  }
}
