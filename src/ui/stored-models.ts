import { computed, signal } from "@preact/signals";
import { toError } from "../errors/service-error.ts";
import { readManifests } from "../tab/store/manifests.ts";
import { ModelStore, type StoredModel } from "../tab/store/model-store.ts";
import type { ListedModel } from "./daemon-api.ts";

/** Models in the browser's storage, which the engine of this tab can run. */

/** State of a model that only this browser has, or whose daemon is unreachable. */
export const IN_BROWSER = "in this browser";

export const storedModels = signal<readonly StoredModel[]>([]);

/** Storage that this site uses and may still use, in bytes; undefined if unknown. */
export const storage = signal<{ readonly used: number; readonly free: number } | undefined>(undefined);

/** Reason why this browser cannot store models, or empty. */
export const storageProblem = signal("");

/** Names of the stored models that can process images. */
const visionModels = signal<ReadonlySet<string>>(new Set());

/** Completely stored models, in the format of the daemon's list. */
export const listedStoredModels = computed<readonly ListedModel[]>(() =>
  storedModels.value
    .filter(({ size, stored }) => size === stored)
    .map(({ name, size }) => ({
      alias: name,
      state: IN_BROWSER,
      size_bytes: size,
      is_default: false,
      purpose: "generate",
      in_browser: true,
      capabilities: { vision: visionModels.value.has(name) },
    })),
);

/** Reads the list of stored models. */
export async function refreshStored(): Promise<void> {
  if (!isSecureContext || typeof navigator.storage?.getDirectory !== "function") {
    storageProblem.value = "Browsers store models only for pages on localhost and over HTTPS.";
    return;
  }
  try {
    const store = pageStore();
    const [list, usage, manifests] = await Promise.all([store.list(), store.usage(), readManifests()]);
    visionModels.value = new Set(
      manifests.flatMap(({ name, files }) => (files.some(({ role }) => role === "projector") ? [name] : [])),
    );
    storedModels.value = list;
    storage.value = usage;
  } catch (error) {
    storageProblem.value = toError(error).message;
  }
}

/**
 * Joins the models of the daemon, with a mark on those that the browser also has, and those that only the browser has.
 * @param isUnreachable true to run stored models in the browser, since the daemon does not answer
 */
export function joinModels(
  daemonModels: readonly ListedModel[],
  stored: readonly ListedModel[],
  isUnreachable: boolean,
): readonly ListedModel[] {
  const here = new Set(stored.map(({ alias }) => alias));
  const there = new Set(daemonModels.map(({ alias }) => alias));
  return [
    ...daemonModels.map((model) =>
      here.has(model.alias)
        ? { ...model, in_browser: true, ...(isUnreachable && { state: IN_BROWSER }) }
        : model,
    ),
    ...stored.filter(({ alias }) => !there.has(alias)),
  ];
}

/** Returns the store of models in the browser. Its worker may connect to the same servers as the page. */
export function pageStore(): ModelStore {
  const worker = new URL("./store-worker.js", import.meta.url);
  const connect = new URLSearchParams(location.search).get("connect");
  if (connect !== null) worker.searchParams.set("connect", connect);
  return new ModelStore({ worker });
}
