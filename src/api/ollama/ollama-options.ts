import { z } from "zod";
import { loadSettingsSchema } from "../../config/load-settings.ts";
import { list, MAX_STOPS } from "../../http/input/bounded-lists.ts";
import { ignored, repetitionGuardField } from "../../http/input/common-fields.ts";
import { reachableContext } from "../../models/loading/choose-settings.ts";
import { samplingFields } from "../sampling-fields.ts";
import type { Model } from "../../models/model.ts";
import type { Residency } from "../../models/models.ts";

/** The engine's minimum. */
const MIN_CONTEXT = 16;

/** Options of Ollama that change nothing here, neither in a request nor as a new model's PARAMETER. */
export const ignoredOptions = {
  num_thread: ignored("set engine.threads in the daemon's configuration"),
  main_gpu: ignored(),
  low_vram: ignored(),
  f16_kv: ignored(),
  use_mmap: ignored(),
  use_mlock: ignored(),
  numa: ignored(),
  vocab_only: ignored(),
  logits_all: ignored(),
  embedding_only: ignored(),
  penalize_newline: ignored("llama.cpp has removed this setting"),
  tfs_z: ignored("llama.cpp has removed this setting"),
};

/** The `options` field: what a Modelfile calls PARAMETER. Unknown options are ignored. */
export const optionsSchema = z
  .object({
    num_ctx: z
      .int()
      .min(1)
      .nullish()
      .describe(
        "Context size in tokens, at most what the model was trained for. A model loaded with less is reloaded, unless other requests are using it.",
      ),
    num_predict: z
      .int()
      .nullish()
      .describe(
        "Maximum number of tokens to generate; -1, or any number below 1: until the context is full. Default: the model's PARAMETER, otherwise -1.",
      ),
    num_gpu: z
      .int()
      .nullish()
      .describe(
        "Layers to offload to the GPU when this request loads the model; -1: the default of the model or the daemon.",
      ),
    num_batch: loadSettingsSchema.shape.batchSize
      .nullable()
      .describe("Prompt tokens processed in one step, when this request loads the model."),
    num_keep: loadSettingsSchema.shape.numKeep
      .nullable()
      .describe(
        "First tokens of the context that PARAMETER context_shift never drops, when this request loads the model.",
      ),
    ...samplingFields,
    stop: z
      .union([z.string(), list(z.string(), { most: MAX_STOPS })])
      .nullish()
      .describe("Stop sequences; they are not part of the answer."),
    repetition_guard: repetitionGuardField,
    ...ignoredOptions,
  })
  .meta({ id: "OllamaOptions" });

export const optionsField = optionsSchema
  .nullish()
  .describe("Sampling, length and context; see the options below.");
type Options = z.output<typeof optionsField>;

export function toStop(options: Options): string[] | undefined {
  const stop = options?.stop;
  if (stop == null) return undefined;
  // Some clients send an empty string for "none", which would stop the engine immediately.
  return [stop].flat().filter((text) => text !== "");
}

/** For "no limit", returns the context size: undefined would let the model's PARAMETER set a limit. */
export function toMaxTokens(options: Options, model: Model): number | undefined {
  const limit = options?.num_predict;
  if (limit == null) return undefined;
  return limit > 0 ? limit : (requestedContext(options, model) ?? model.contextSize);
}

/** Every request of this API loads its model on demand. */
export function toResidency(
  body: { options?: Options; keep_alive?: number | null | undefined },
  model: Model,
): Residency {
  const layers = body.options?.num_gpu;
  return {
    contextSize: requestedContext(body.options, model),
    gpuLayers: layers == null || layers < 0 ? undefined : layers,
    load: {
      batchSize: body.options?.num_batch ?? undefined,
      numKeep: body.options?.num_keep ?? undefined,
    },
    keepAliveMs: body.keep_alive ?? undefined,
  };
}

function requestedContext(options: Options, { gguf, loadSettings }: Model): number | undefined {
  const requested = options?.num_ctx;
  if (requested == null) return undefined;
  const reachable = reachableContext(gguf, loadSettings) || requested;
  return Math.max(MIN_CONTEXT, Math.min(requested, reachable));
}
