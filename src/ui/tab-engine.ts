import type { z } from "zod";
import { type BrowserEngine, createEngine } from "../tab/create-engine.ts";
import type { DownloadOptions } from "../tab/store/model-store.ts";
import { DaemonUnreachable, fetchJson, hasCode } from "./daemon-api.ts";
import { chosenDaemon, keyOf } from "./daemons.ts";
import { pageStore } from "./stored-models.ts";
import { modelFilesSchema } from "../api/wire/models.ts";

/** The engine of this tab. The last model stays loaded. */
export class TabEngine {
  readonly #onStatus: (text: string) => void;
  readonly #store = pageStore();
  #last:
    | {
        readonly model: string;
        readonly gpu: boolean;
        /** The daemon's list of the model's files, as JSON; undefined if the daemon was unreachable. */
        readonly files: string | undefined;
        readonly engine: BrowserEngine;
      }
    | undefined;

  /** @param onStatus called with a status text for the user */
  constructor(onStatus: (text: string) => void) {
    this.#onStatus = onStatus;
  }

  /**
   * Starts the engine with a model of the daemon, after downloading it into the browser. A stored model needs no
   * daemon.
   * @param gpu true to require the browser's GPU
   * @throws Error with a message for the user
   */
  async start(model: string, gpu: boolean, signal: AbortSignal): Promise<BrowserEngine> {
    const found = await fetchModelFiles(model, signal).catch(async (error: unknown) => {
      const isMissingInDaemon = error instanceof DaemonUnreachable || hasCode(error, "model_not_found");
      if (isMissingInDaemon && (await this.#isStored(model))) return undefined;
      throw error;
    });
    const files = found && JSON.stringify(found);
    const last = this.#last;
    if (last?.model === model && last.gpu === gpu && (files === undefined || last.files === files))
      return last.engine;
    last?.engine.close();
    this.#last = undefined;
    const onDownload = (share: number): void =>
      this.#onStatus(`Downloading ${model} into this browser: ${Math.round(share * 100)} %`);
    if (files !== undefined)
      await this.#store.download(model, { ...daemonOptions(), onProgress: onDownload, signal });
    const engine = await createEngine({
      ...(await this.#store.open(model)),
      gpu,
      onProgress: (share) => this.#onStatus(`Loading ${model} into this tab: ${Math.round(share * 100)} %`),
      signal,
    });
    if (gpu && engine.gpu.adapter === undefined) {
      engine.close();
      throw new Error(`This tab cannot use a GPU. ${engine.gpu.problem}`);
    }
    this.#last = { model, gpu, files, engine };
    return engine;
  }

  async #isStored(model: string): Promise<boolean> {
    return (await this.#store.list()).some(({ name, size, stored }) => name === model && size === stored);
  }
}

/** Returns the address and the API key for downloads from the chosen daemon. */
function daemonOptions(): Pick<DownloadOptions, "daemon" | "apiKey"> {
  const daemon = chosenDaemon();
  if (!daemon) return {};
  const apiKey = keyOf(daemon.address);
  return { daemon: daemon.address, ...(apiKey !== undefined && { apiKey }) };
}

/** Requests the list of a model's files from the daemon. */
export async function fetchModelFiles(
  model: string,
  signal?: AbortSignal,
): Promise<z.output<typeof modelFilesSchema>> {
  const path = `/api/models/${encodeURIComponent(model)}/files`;
  return await fetchJson(modelFilesSchema, path, signal ? { signal } : {});
}
