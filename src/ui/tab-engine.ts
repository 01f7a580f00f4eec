import type { z } from "zod";
import { modelFilesSchema } from "../dialects/management/model-file-routes.ts";
import { type BrowserEngine, createEngine } from "../tab/create-engine.ts";
import { ModelStore } from "../tab/store/model-store.ts";
import { DaemonAway, isUnknownModel, request } from "./daemon-api.ts";

/** The engine of this tab, which keeps its last model. */
export class TabEngine {
  readonly #onStatus: (text: string) => void;
  readonly #store = new ModelStore();
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
      // Without the daemon, or where a person has given the browser a model of their own.
      if ((error instanceof DaemonAway || isUnknownModel(error)) && (await this.#isStored(model)))
        return undefined;
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
    if (files !== undefined) await this.#store.download(model, { onProgress: onDownload, signal });
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

/** What the daemon says of a model's files. */
export async function modelFiles(
  model: string,
  signal?: AbortSignal,
): Promise<z.output<typeof modelFilesSchema>> {
  const path = `/api/models/${encodeURIComponent(model)}/files`;
  const answer = await request(path, signal ? { signal } : {});
  return modelFilesSchema.parse(await answer.json());
}
