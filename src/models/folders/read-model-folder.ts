import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import { throwExhaustion } from "../../errors/exhausted-resource.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { listNames } from "../../files/list-names.ts";
import { repoOfFolder } from "../hub/cache/repo-cache.ts";
import type { FolderContents } from "./found-model.ts";
import { readHubCache } from "./hub-cache.ts";
import { readOllamaStore } from "./ollama-store.ts";
import { readPlainFolder } from "./plain-folder.ts";

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
