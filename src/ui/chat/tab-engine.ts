import { type BrowserEngine, createEngine } from "../../tab/create-engine.ts";
import { ModelStore } from "../../tab/store/model-store.ts";
import type { Fetch } from "./daemon-api.ts";

let last: { readonly model: string; readonly engine: BrowserEngine } | undefined;

/**
 * The engine of this tab with a model, which is stored in the browser first. It stays until another model is asked for.
 * @param onStatus called with a sentence for people
 */
export async function tabEngine(
  model: string,
  onStatus: (text: string) => void,
  signal: AbortSignal,
): Promise<Fetch> {
  if (last?.model !== model) {
    last?.engine.close();
    last = undefined;
    const store = new ModelStore();
    const stored = (await store.list()).find(({ name }) => name === model);
    const onDownload = (share: number): void =>
      onStatus(`Downloading ${model} into this browser: ${Math.round(share * 100)} %`);
    if (!stored || stored.stored < stored.size)
      await store.download(model, { onProgress: onDownload, signal });
    const onProgress = (share: number): void =>
      onStatus(`Loading ${model} into this tab: ${Math.round(share * 100)} %`);
    last = { model, engine: await createEngine({ ...(await store.open(model)), onProgress, signal }) };
  }
  onStatus(`${model} answers in this tab …`);
  const { engine } = last;
  return async (path, init) => await engine.fetch(path, init);
}
