import { fileStem, shardFiles, shardOf } from "../../models/names/model-file-names.ts";
import { activity, models, problem, showProblem } from "../page-state.ts";
import { IN_BROWSER, pageStore, refreshStored } from "../stored-models.ts";

/** First bytes of a GGUF file. */
const GGUF_MAGIC = "GGUF";

export async function deleteStored(name: string): Promise<void> {
  await pageStore().delete(name).catch(showProblem);
  await refreshStored();
}

/**
 * Stores models from files that the user has picked. Shows the error if that fails.
 * @returns true if models were stored
 */
export async function storePickedFiles(files: readonly File[]): Promise<boolean> {
  if (files.length === 0) return false;
  problem.value = "";
  try {
    await storeFiles(files);
    return true;
  } catch (error) {
    showProblem(error);
    return false;
  }
}

/**
 * Stores models from files that the user has picked. The shards of a model become one model.
 * @throws Error with a message for the user
 */
async function storeFiles(files: readonly File[]): Promise<void> {
  const byName = new Map(files.map((file) => [file.name, file]));
  // A browser that refuses persistent storage still stores the files.
  navigator.storage.persist().catch(() => false);
  try {
    for (const file of files) {
      if ((shardOf(file.name)?.index ?? 1) !== 1 && byName.has(shardFiles(file.name)[0] ?? "")) continue;
      await checkGguf(file);
      const shards = shardFiles(file.name).map((name) => {
        const shard = byName.get(name);
        if (!shard) throw new Error(`${file.name} is one of several files; choose ${name}, too.`);
        return shard;
      });
      const name = unusedName(fileStem(file.name));
      await pageStore().add(name, shards, {
        onProgress: (share) =>
          (activity.value = `Storing ${name} in this browser: ${Math.round(share * 100)} %`),
      });
    }
  } finally {
    activity.value = "";
    await refreshStored();
  }
}

async function checkGguf(file: File): Promise<void> {
  const start = await file.slice(0, GGUF_MAGIC.length).text();
  if (start !== GGUF_MAGIC)
    throw new Error(`${file.name} is not a GGUF file. Models for Daybreak have names that end in .gguf.`);
}

/** True if the daemon has a model of that name. */
export function isDaemonModel(name: string): boolean {
  return models.value.some(({ alias, state }) => alias === name && state !== IN_BROWSER);
}

/** Returns a name that no model of the daemon has: a stored model with the name of a daemon's counts as its copy. */
function unusedName(stem: string): string {
  if (!isDaemonModel(stem)) return stem;
  let number = 2;
  while (isDaemonModel(`${stem}-${number}`)) number += 1;
  return `${stem}-${number}`;
}
