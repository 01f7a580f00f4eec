import { readManifests } from "../tab/store/manifests.ts";
import type { ListedModel } from "./daemon-api.ts";
import { pageStore } from "./page-store.ts";

/** State of a model that this browser has, and the daemon has not or cannot be asked. */
export const IN_BROWSER = "in this browser";

/** The models that this browser has stored whole, as the daemon would list them. */
export async function storedModels(): Promise<ListedModel[]> {
  // Over plain HTTP from another machine there is no storage.
  if (!isSecureContext || typeof navigator.storage?.getDirectory !== "function") return [];
  const [list, manifests] = await Promise.all([pageStore().list(), readManifests()]);
  return list
    .filter(({ size, stored }) => size === stored)
    .map(({ name, size }) => ({
      alias: name,
      state: IN_BROWSER,
      size_bytes: size,
      is_default: false,
      purpose: "generate",
      in_browser: true,
      capabilities: {
        vision: manifests.some(
          (each) => each.name === name && each.files.some(({ role }) => role === "projector"),
        ),
      },
    }));
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
