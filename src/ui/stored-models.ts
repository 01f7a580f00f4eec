import { computed, signal as value } from "@preact/signals";
import { shardFiles, shardOf, fileStem } from "../models/names/shards.ts";
import { ModelStore, type StoredModel } from "../tab/store/model-store.ts";
import type { ListedModel } from "./daemon-api.ts";
import { activity, models, showProblem } from "./page-state.ts";

/** The models in the browser's storage, which the engine of this tab can run. */

/** How a GGUF file begins. */
const MAGIC = "GGUF";

const store = new ModelStore();

export const storedModels = value<readonly StoredModel[]>([]);

/** What this site stores in the browser and may store, in bytes; undefined: the browser does not say. */
export const storage = value<{ used: number; free: number } | undefined>(undefined);

/** Why this browser stores nothing; empty: it does. */
export const storageProblem = value("");

/** Stored models that the daemon does not have, for those who choose a model. */
export const storedAlone = computed<readonly ListedModel[]>(() =>
  storedModels.value
    .filter(({ size, stored }) => stored === size)
    .filter(({ name }) => !models.value.some(({ alias }) => alias === name))
    .map(({ name, size }) => ({
      alias: name,
      state: "in this browser",
      is_default: false,
      purpose: "generate",
      size_bytes: size,
    })),
);

/** Reads what is stored. */
export async function refreshStored(): Promise<void> {
  if (!isSecureContext) {
    storageProblem.value = "Browsers store models only for pages on localhost and over HTTPS.";
    return;
  }
  try {
    storedModels.value = await store.list();
    storage.value = await store.usage();
  } catch (error) {
    storageProblem.value = error instanceof Error ? error.message : String(error);
  }
}

export async function deleteStored(name: string): Promise<void> {
  await store.delete(name).catch(showProblem);
  await refreshStored();
}

/**
 * Stores models from files that a person has picked; the shards of one are put together.
 * @returns the names of those that are stored now
 * @throws Error with a message for people
 */
export async function storeFiles(files: readonly File[]): Promise<string[]> {
  const names: string[] = [];
  const byName = new Map(files.map((file) => [file.name, file]));
  // Asked once; a browser that refuses stores them all the same.
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
      const name = freeName(fileStem(file.name));
      await store.add(name, shards, {
        onProgress: (share) =>
          (activity.value = `Storing ${name} in this browser: ${Math.round(share * 100)} %`),
      });
      names.push(name);
    }
  } finally {
    activity.value = "";
    await refreshStored();
  }
  return names;
}

async function checkGguf(file: File): Promise<void> {
  const start = await file.slice(0, MAGIC.length).text();
  if (start !== MAGIC)
    throw new Error(`${file.name} is not a GGUF file. Models for Daybreak have names that end in .gguf.`);
}

function isTaken(name: string): boolean {
  return models.value.some(({ alias }) => alias === name);
}

/** A model of the daemon keeps its name: what is stored under it is a copy of the daemon's. */
function freeName(stem: string): string {
  if (!isTaken(stem)) return stem;
  let number = 2;
  while (isTaken(`${stem}-${number}`)) number += 1;
  return `${stem}-${number}`;
}

void refreshStored();
