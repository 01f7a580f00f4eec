import type { z } from "zod";
import { modelFilesSchema } from "../api/management/model-file-routes.ts";
import { type BrowserEngine, createEngine } from "../tab/create-engine.ts";
import type { DownloadOptions } from "../tab/store/model-store.ts";
import { DaemonUnreachable, isUnknownModel, request } from "./daemon-api.ts";
import { chosenDaemon, keyOf } from "./daemons.ts";
import { pageStore } from "./page-store.ts";

/** The engine of this tab, which keeps its last model. */
export class TabEngine {
  readonly #onStatus: (text: string) => void;
  readonly #store = pageStore();
  #last:
    | {
        readonly model: string;
        readonly gpu: boolean;
        /** What the daemon said of the model's files; undefined while it was away. */
        readonly files: string | undefined;
        readonly engine: BrowserEngine;
      }
    | undefined;

  /** @param onStatus called with a sentence for people */
  constructor(onStatus: (text: string) => void) {
    this.#onStatus = onStatus;
  }

  /**
   * The engine with a model of the daemon, which is stored in the browser first. What is stored needs no daemon.
   * @param gpu use the browser's GPU, or fail
   * @throws Error with a message for people
   */
  async start(model: string, gpu: boolean, signal: AbortSignal): Promise<BrowserEngine> {
    const found = await modelFiles(model, signal).catch(async (error: unknown) => {
      const isElsewhere = error instanceof DaemonUnreachable || isUnknownModel(error);
      if (isElsewhere && (await this.#isStored(model))) return undefined;
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
      await this.#store.download(model, { ...daemonAccess(), onProgress: onDownload, signal });
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

/** Where models come from. */
function daemonAccess(): Pick<DownloadOptions, "daemon" | "apiKey"> {
  const daemon = chosenDaemon();
  if (!daemon) return {};
  const apiKey = keyOf(daemon.address);
  return { daemon: daemon.address, ...(apiKey !== undefined && { apiKey }) };
}

/** What the daemon says of a model's files. */
export async function modelFiles(
  model: string,
  signal?: AbortSignal,
): Promise<z.output<typeof modelFilesSchema>> {
  const path = `/api/models/${encodeURIComponent(model)}/files`;
  const answer = await request(path, signal ? { signal } : {});
  return modelFilesSchema.parse(await answer.json());
}
