import { z } from "zod";
import { loadSettingsSchema } from "../../config/load-settings.ts";
import { list, MAX_STOPS } from "../../http/input/bounded-lists.ts";
import { ignored, repetitionGuardField, optional } from "../../http/input/common-fields.ts";
import { supportedContext } from "../../models/loading/choose-settings.ts";
import type { Model } from "../../models/model.ts";
import type { Residency } from "../../models/models.ts";
import { samplingFields } from "../wire/generation-fields.ts";

/** Minimum context size of an engine. */
const MIN_CONTEXT = 16;

/** Options of Ollama without an effect, neither in a request nor as a PARAMETER of a new model. */
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

/** Field `options`: the settings that a Modelfile sets with PARAMETER. Unknown options are ignored. */
export const optionsSchema = z
  .object({
    num_ctx: optional(
      z.int().min(1),
      "Context size in tokens, limited to the trained context size. A model loaded with a smaller context is reloaded, unless other requests use it.",
    ),
    num_predict: optional(
      z.int(),
      "Maximum number of tokens to generate; below 1: until the context is full. Default: the model's PARAMETER, otherwise -1.",
    ),
    num_gpu: optional(
      z.int(),
      "Layers to offload to the GPU if this request loads the model; -1: the default of the model or the daemon.",
    ),
    num_batch: loadSettingsSchema.shape.batchSize
      .nullable()
      .describe("Prompt tokens per prefill step, if this request loads the model."),
    num_keep: loadSettingsSchema.shape.numKeep
      .nullable()
      .describe("Number of initial tokens that context_shift never drops, if this request loads the model."),
    ...samplingFields,
    stop: optional(
      z.union([z.string(), list(z.string(), { max: MAX_STOPS })]),
      "Stop sequences; not included in the answer.",
    ),
    repetition_guard: repetitionGuardField,
    ...ignoredOptions,
  })
  .meta({ id: "OllamaOptions" });

export const optionsField = optional(
  optionsSchema,
  "Settings of sampling, length and context; see the options below.",
);
type Options = z.output<typeof optionsField>;

/** Returns the token limit. For "no limit", the context size, because undefined would apply the model's PARAMETER. */
export function toMaxTokens(options: Options, model: Model): number | undefined {
  const limit = options?.num_predict;
  if (limit == null) return undefined;
  return limit > 0 ? limit : (requestedContext(options, model) ?? model.contextSize);
}

/** Returns load options, because every request of this API loads its model on demand. */
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
  const supported = supportedContext(gguf, loadSettings) || requested;
  return Math.max(MIN_CONTEXT, Math.min(requested, supported));
}
