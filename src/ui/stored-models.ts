import { computed, signal as value } from "@preact/signals";
import { toError } from "../errors/to-error.ts";
import { readManifests } from "../tab/store/manifests.ts";
import type { StoredModel } from "../tab/store/model-store.ts";
import type { ListedModel } from "./daemon-api.ts";
import { pageStore } from "./page-store.ts";

/** The models in the browser's storage, which the engine of this tab can run. */

/** State of a model that this browser has, and the daemon has not or cannot be asked. */
export const IN_BROWSER = "in this browser";

export const storedModels = value<readonly StoredModel[]>([]);

/** What this site stores in the browser and may store, in bytes; undefined: the browser does not say. */
export const storage = value<{ readonly used: number; readonly free: number } | undefined>(undefined);

/** Why this browser stores nothing; empty: it does. */
export const storageProblem = value("");

/** Names of those that can see images. */
const seeing = value<ReadonlySet<string>>(new Set());

/** Those that are stored whole, as the daemon would list them. */
export const listedStored = computed<readonly ListedModel[]>(() =>
  storedModels.value
    .filter(({ size, stored }) => size === stored)
    .map(({ name, size }) => ({
      alias: name,
      state: IN_BROWSER,
      size_bytes: size,
      is_default: false,
      purpose: "generate",
      in_browser: true,
      capabilities: { vision: seeing.value.has(name) },
    })),
);

/** Reads what is stored. */
export async function refreshStored(): Promise<void> {
  if (!isSecureContext || typeof navigator.storage?.getDirectory !== "function") {
    storageProblem.value = "Browsers store models only for pages on localhost and over HTTPS.";
    return;
  }
  try {
    const store = pageStore();
    const [list, usage, manifests] = await Promise.all([store.list(), store.usage(), readManifests()]);
    seeing.value = new Set(
      manifests.flatMap(({ name, files }) => (files.some(({ role }) => role === "projector") ? [name] : [])),
    );
    storedModels.value = list;
    storage.value = usage;
  } catch (error) {
    storageProblem.value = toError(error).message;
  }
}

/**
 * The models of the daemon, with a mark on those that the browser has as well, and behind them those that only the browser
 * has.
 * @param isAway the daemon answers nothing: what the browser has runs there
 */
export function joinModels(
  ofDaemon: readonly ListedModel[],
  stored: readonly ListedModel[],
  isAway: boolean,
): readonly ListedModel[] {
  const here = new Set(stored.map(({ alias }) => alias));
  const there = new Set(ofDaemon.map(({ alias }) => alias));
  return [
    ...ofDaemon.map((model) =>
      here.has(model.alias) ? { ...model, in_browser: true, ...(isAway && { state: IN_BROWSER }) } : model,
    ),
    ...stored.filter(({ alias }) => !there.has(alias)),
  ];
}
