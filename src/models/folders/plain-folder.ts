import { readdir } from "node:fs/promises";
import type { Dirent } from "node:fs";
import path from "node:path";
import { throwExhaustion } from "../../errors/exhausted-resource.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { realPathInside } from "../hub/cache/repo-cache.ts";
import { chooseProjector, groupModels } from "../names/choose-file.ts";
import { hasInvisible } from "../names/name-rules.ts";
import { withoutQuantization } from "../names/quantization.ts";
import { fileStem, shardOf } from "../names/shards.ts";
import type { FolderContents, FoundModel, LeftOut } from "./found-model.ts";

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
export async function readPlainFolder(folder: string): Promise<FolderContents> {
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
export function fileName(file: string, folder: string): string {
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
