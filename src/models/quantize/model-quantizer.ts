import path from "node:path";
import { formatGigabytes } from "../../json/quantities.ts";
import type { QuantizeTensors } from "../../engine/quantize/quantize-tensors.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { BlobStore } from "../blobs/blob-store.ts";
import { freeSpace, type FreeSpace, RESERVE_BYTES } from "../../files/file-operations.ts";
import {
  findFileType,
  type QuantizedModel,
  type QuantizeOptions,
  type QuantizeProgress,
} from "./quantize-options.ts";
import { printModelfile } from "../modelfile/read-modelfile.ts";
import type { CheckDefinition, ModelDraft } from "../registry/defined-models.ts";
import { type ModelRecord, realModelPath } from "../registry/model-record.ts";
import type { ModelRegistry } from "../registry/model-registry.ts";
import { planQuantization, type QuantizationPlan } from "./plan-quantization.ts";

interface QuantizerOptions {
  readonly registry: ModelRegistry;
  readonly blobs: BlobStore;
  readonly quantizeTensors: QuantizeTensors;
  readonly processors: number;
  readonly check: CheckDefinition;
  readonly measureSpace?: FreeSpace;
}

/** Maximum threads: each has its own WebAssembly memory, and more would wait for the disk. */
const MAX_THREADS = 16;
/** Retry-After while another model is being quantized, which takes minutes. */
const RETRY_AFTER_SECS = 30;

type Quantized = Omit<QuantizedModel, "model"> & { readonly record: ModelRecord };

/** Quantizes models, one at a time, because each uses all processors. */
export class ModelQuantizer {
  readonly #options: QuantizerOptions;
  #isBusy = false;

  constructor(options: QuantizerOptions) {
    this.#options = options;
  }

  /** Quantizes a model and creates the new one. All checks are made before the work begins. */
  async quantize(
    options: QuantizeOptions,
    onProgress: (progress: QuantizeProgress) => void,
    signal: AbortSignal,
  ): Promise<Quantized> {
    const { alias: name, modelfile, quantization, mayRequantize } = options;
    const fileType = findFileType(quantization);
    const { registry, check, blobs } = this.#options;
    const draft = await registry.draft(name, modelfile);
    const [first, ...others] = await Promise.all(draft.record.files.map(realModelPath));
    const plan = await planQuantization([first!, ...others], fileType, mayRequantize);
    await check({ ...draft.record, gguf: plan.summary }, draft.definition);
    await this.#checkSpace(plan.fileSize);
    if (this.#isBusy) {
      throw new ServiceError(
        "overloaded",
        "Another model is being quantized, which uses all processors; try again when that is done.",
        { retryAfterSecs: RETRY_AFTER_SECS },
      );
    }
    this.#isBusy = true;
    try {
      const { quantization: from } = draft.record.gguf;
      const file = await this.#write(
        plan,
        (completedBytes) =>
          onProgress({ from, to: fileType.name, completedBytes, totalBytes: plan.fileSize }),
        signal,
      );
      try {
        const record = await registry.create(draft.record.alias, modelfileOf(draft, file), undefined, check);
        const { sourceBytes, fileSize: sizeBytes, bitsPerWeight, fallbackTensors } = plan;
        return { record, sourceBytes, sizeBytes, bitsPerWeight, fallbackTensors };
      } catch (error) {
        await blobs.discard(file);
        throw error;
      }
    } finally {
      this.#isBusy = false;
    }
  }

  /** Writes the quantized file and returns its path. */
  async #write(
    plan: QuantizationPlan,
    onProgress: (bytes: number) => void,
    signal: AbortSignal,
  ): Promise<string> {
    const { blobs, quantizeTensors, processors } = this.#options;
    const threads = Math.max(1, Math.min(processors, MAX_THREADS));
    const { header, job, fileSize } = plan;
    return await blobs.add(counted());

    async function* parts(): AsyncGenerator<Uint8Array, void, undefined> {
      yield header;
      yield* quantizeTensors({ ...job, threads }, signal);
    }

    /** The process that quantizes is not trusted, because it reads untrusted files. */
    async function* counted(): AsyncGenerator<Uint8Array, void, undefined> {
      let written = 0;
      for await (const part of parts()) {
        written += part.length;
        if (written > fileSize) throw unexpectedSize(written, fileSize);
        yield part;
        onProgress(written);
      }
      if (written !== fileSize) throw unexpectedSize(written, fileSize);
    }
  }

  /** @throws ServiceError insufficient_disk */
  async #checkSpace(needed: number): Promise<void> {
    const { blobs, measureSpace = freeSpace } = this.#options;
    const free = await measureSpace(path.dirname(blobs.folder));
    if (free === undefined || free >= needed + RESERVE_BYTES) return;
    throw new ServiceError(
      "insufficient_disk",
      `The quantized model needs ${formatGigabytes(needed)} in ${blobs.folder}, where ${formatGigabytes(free)} are free; ${formatGigabytes(RESERVE_BYTES)} must stay free. Delete models that are not needed (daybreak rm), then try again.`,
    );
  }
}

/** Writes the Modelfile of the new model, with the settings, adapters, projector and draft model of the original. */
function modelfileOf({ definition, record }: ModelDraft, file: string): string {
  return printModelfile({
    ...definition,
    from: file,
    settings: record.settings,
    adapters: record.adapters.map((adapter) => ({ path: adapter.file.path, scale: adapter.scale })),
    projector: record.projector?.path,
    draft: record.draft?.path,
    digest: undefined,
  });
}

function unexpectedSize(bytes: number, expected: number): ServiceError {
  return new ServiceError(
    "quantization_failed",
    `The process that quantizes wrote ${bytes} bytes, where ${expected} were expected.`,
  );
}
