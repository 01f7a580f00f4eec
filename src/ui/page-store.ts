import { ModelStore } from "../tab/store/model-store.ts";

/** Returns the store of models in the browser. Its worker may connect to the same servers as the page. */
export function pageStore(): ModelStore {
  const worker = new URL("./store-worker.js", import.meta.url);
  const connect = new URLSearchParams(location.search).get("connect");
  if (connect !== null) worker.searchParams.set("connect", connect);
  return new ModelStore({ worker });
}
