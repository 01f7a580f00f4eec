import { z } from "zod";
import { LLAMA_CPP_BUILD } from "../../../wasm/llama-cpp-build.ts";
import { MOST_ADAPTERS } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { list } from "../../http/input/bounded-lists.ts";
import { adapterScales } from "../../inference/adapter-scales.ts";
import { adapterChoice } from "../engine-fields.ts";
import { modelName } from "../../http/input/known-fields.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import type { Services } from "../services.ts";
import { generationSettings } from "./generation-settings.ts";
import { requiredModel } from "./required-model.ts";

const tag = "llama-server";

const modelQuery = z.object({
  model: modelName.optional().describe("Model name. Default: the daemon's default model."),
});

const propsSchema = z
  .object({
    default_generation_settings: z.object({
      n_ctx: z.int().describe("Context of one request, in tokens."),
      params: z.record(z.string(), z.unknown()),
    }),
    total_slots: z.int(),
    model_alias: z.string(),
    model_path: z.string(),
    modalities: z.object({ vision: z.boolean(), audio: z.boolean() }),
    chat_template: z.string(),
    chat_template_caps: z.object({ supports_tools: z.boolean(), supports_tool_calls: z.boolean() }),
    build_info: z.string(),
    is_sleeping: z.boolean().describe("Whether the model has to be loaded first."),
  })
  .meta({ id: "LlamaServerProps" });

/** GET /props. */
export function propsRoute({ models, config }: Services): Route {
  return defineRoute({
    method: "GET",
    path: "/props",
    tag,
    summary: "Show how a model is served",
    query: modelQuery,
    answers: [{ description: "The properties.", schema: propsSchema }],
    async handle(context, { query }) {
      const model = await requiredModel(models, query.model);
      const { settings, capabilities } = model;
      const sampling = { ...DEFAULT_SAMPLING, ...settings.sampling };
      const params = { limit: settings.maxTokens, stop: settings.stop, stream: true };
      return context.json({
        default_generation_settings: {
          n_ctx: model.contextSize,
          params: generationSettings(sampling, params),
        },
        total_slots: model.slots ?? config.models.slots,
        model_alias: model.alias,
        model_path: model.path,
        modalities: { vision: capabilities.vision, audio: capabilities.audio },
        chat_template: settings.template ?? model.gguf.chatTemplate ?? "",
        chat_template_caps: { supports_tools: capabilities.tools, supports_tool_calls: capabilities.tools },
        build_info: `${LLAMA_CPP_BUILD}-daybreak`,
        is_sleeping: model.state !== "loaded",
      } satisfies z.output<typeof propsSchema>);
    },
  });
}

/** POST /props, which llama.cpp's server serves with --props alone, and which changes nothing there either. */
export function changePropsRoute(): Route {
  return defineRoute({
    method: "POST",
    path: "/props",
    tag,
    summary: "Refused: how a model is served is not changed while it runs",
    answers: [],
    handle() {
      throw new ServiceError(
        "unsupported_feature",
        "How a model is served is not changed while it runs; send settings with each request, or load it anew with POST /api/models/load.",
      );
    },
  });
}

const adaptersSchema = z
  .array(z.object({ id: z.int(), path: z.string(), scale: z.number() }))
  .meta({ id: "LlamaServerAdapters" });

/** GET /lora-adapters. */
export function adaptersRoute({ models }: Services): Route {
  return defineRoute({
    method: "GET",
    path: "/lora-adapters",
    tag,
    summary: "List the LoRA adapters of a model",
    query: modelQuery,
    answers: [{ description: "The adapters.", schema: adaptersSchema }],
    async handle(context, { query }) {
      const { adapters } = await requiredModel(models, query.model);
      return context.json(adapters.map(({ path, scale }, id) => ({ id, path, scale })));
    },
  });
}

/** POST /lora-adapters. */
export function scaleAdaptersRoute({ models }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/lora-adapters",
    tag,
    summary: "Change the scales of a loaded model's LoRA adapters",
    description:
      "For requests that do not choose themselves, until the model is unloaded. Adapters that are not listed are off. Embeddings keep the scales of the Modelfile.",
    query: modelQuery,
    body: list(adapterChoice, { most: MOST_ADAPTERS }),
    answers: [{ description: "They are changed.", schema: z.object({ success: z.literal(true) }) }],
    async handle(context, { query, body }) {
      const model = await requiredModel(models, query.model);
      const chosen = body.map(({ id, name, scale }) => ({
        id: id ?? undefined,
        name: name ?? undefined,
        scale,
      }));
      await models.scaleAdapters(model.alias, adapterScales(model, chosen) ?? []);
      return context.json({ success: true });
    },
  });
}
