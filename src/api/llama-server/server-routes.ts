import { z } from "zod";
import { LLAMA_CPP_BUILD } from "../../../wasm/llama-cpp-build.ts";
import { MAX_ADAPTERS } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { list } from "../../http/input/bounded-lists.ts";
import { modelName, invalidField, modelField, optional } from "../../http/input/common-fields.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import { adapterScales } from "../../inference/lora-adapters.ts";
import { assertSavedName } from "../../models/slots/saved-header.ts";
import type { ModelServices, Services } from "../services.ts";
import { generationSettings } from "./completion-routes.ts";
import { requiredModel } from "./llama-server-error.ts";
import { adapterChoiceSchema } from "../wire/generation-fields.ts";

const tag = "llama-server";

const modelQuery = z.object({
  model: modelName.optional().describe("Model name. Default: the daemon's default model."),
});

const propsSchema = z
  .object({
    default_generation_settings: z.object({
      n_ctx: z.int().describe("Context size of one request, in tokens."),
      params: z.record(z.string(), z.unknown()),
    }),
    total_slots: z.int(),
    model_alias: z.string(),
    model_path: z.string(),
    modalities: z.object({ vision: z.boolean(), audio: z.boolean() }),
    chat_template: z.string(),
    chat_template_caps: z.object({ supports_tools: z.boolean(), supports_tool_calls: z.boolean() }),
    build_info: z.string(),
    is_sleeping: z.boolean().describe("The model is not loaded."),
  })
  .meta({ id: "LlamaServerProps" });

/** GET /props. */
export function propsRoute({ models, config }: Services): Route {
  return defineRoute({
    method: "GET",
    path: "/props",
    tag,
    summary: "Show a model's server properties",
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

/** POST /props. llama.cpp's server has it only with --props, and it changes nothing there either. */
export function changePropsRoute(): Route {
  return defineRoute({
    method: "POST",
    path: "/props",
    tag,
    summary: "Change server properties (not supported)",
    answers: [],
    handle() {
      throw new ServiceError(
        "unsupported_feature",
        "Properties of a loaded model cannot be changed; send settings with each request, or reload it with POST /api/models/load.",
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
      "Applies to requests without the field lora, until the model is unloaded. Adapters not listed are off. Embeddings keep the scales of the Modelfile.",
    query: modelQuery,
    body: list(adapterChoiceSchema, { max: MAX_ADAPTERS }),
    answers: [
      { description: "The scales have been changed.", schema: z.object({ success: z.literal(true) }) },
    ],
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

/** Maximum length of a saved prompt's name. */
const MAX_SAVED_NAME_LENGTH = 64;
const SLOT_NUMBER = /^\d+$/;

const slotsSchema = z
  .array(
    z.object({
      id: z.int(),
      n_ctx: z.int(),
      speculative: z.literal(false),
      is_processing: z.boolean(),
      n_prompt_tokens: z.int().describe("Tokens in its KV cache."),
    }),
  )
  .meta({ id: "LlamaServerSlots" });

/** GET /slots. */
export function slotsRoute({ models }: ModelServices): Route {
  return defineRoute({
    method: "GET",
    path: "/slots",
    tag,
    summary: "List the slots of a model",
    description: "The list is empty while the model is not loaded.",
    query: z.object({
      model: modelName.optional().describe("Model name. Default: the daemon's default model."),
      fail_on_no_slot: z.string().optional().describe("1: answer 503 if no slot is free."),
    }),
    answers: [{ description: "The slots.", schema: slotsSchema }],
    async handle(context, { query }) {
      const { alias, contextSize } = await requiredModel(models, query.model);
      const { slots } = await models.slots.list(alias, context.req.raw.signal);
      if (query.fail_on_no_slot === "1" && slots.every(({ isBusy }) => isBusy)) {
        throw new ServiceError("overloaded", `No slot of "${alias}" is free; try again later.`);
      }
      return context.json(
        slots.map(({ id, tokens, isBusy }) => ({
          id,
          n_ctx: contextSize,
          speculative: false as const,
          is_processing: isBusy,
          n_prompt_tokens: tokens,
        })) satisfies z.output<typeof slotsSchema>,
      );
    },
  });
}

const slotRequestSchema = z
  .object({
    model: modelField,
    filename: optional(
      z.string().min(1).max(MAX_SAVED_NAME_LENGTH),
      "Name of the saved prompt, required by save and restore: letters, digits, dots, hyphens and underscores.",
    ),
  })
  .meta({ id: "LlamaServerSlotRequest" });

const slotResultFields = { id_slot: z.int(), filename: z.string() };
const slotResultSchema = z
  .union([
    z.object({
      ...slotResultFields,
      n_saved: z.int(),
      n_written: z.int(),
      timings: z.object({ save_ms: z.number() }),
    }),
    z.object({
      ...slotResultFields,
      n_restored: z.int(),
      n_read: z.int(),
      timings: z.object({ restore_ms: z.number() }),
    }),
    z.object({ id_slot: z.int(), n_erased: z.int() }),
  ])
  .describe("Counts of tokens, bytes of the saved state, and milliseconds.")
  .meta({ id: "LlamaServerSlotResult" });

/** POST /slots/{id}?action= with save, restore or erase. */
export function slotActionRoute({ models }: ModelServices): Route {
  return defineRoute({
    method: "POST",
    path: "/slots/:id",
    tag,
    summary: "Save, restore or erase a slot",
    description: "Uses the same saved prompts as POST /api/models/{name}/slots.",
    query: z.object({ action: z.enum(["save", "restore", "erase"]).describe("What to do with the slot.") }),
    body: slotRequestSchema,
    // llama.cpp's server needs no body for erase.
    bodyWhenEmpty: {},
    answers: [{ description: "The result.", schema: slotResultSchema }],
    async handle(context, { query: { action }, body }) {
      const { signal } = context.req.raw;
      const slot = parseSlot(context.req.param("id"));
      const { alias } = await requiredModel(models, body.model);
      if (action === "erase") {
        return context.json({ id_slot: slot, n_erased: await models.slots.erase(alias, slot, signal) });
      }
      const { filename } = body;
      if (filename == null) {
        throw invalidField("filename", "is missing.");
      }
      if (action === "save") assertSavedName(filename, "filename");
      const { tokens, bytes, milliseconds } = await models.slots[action](
        alias,
        { slot, name: filename },
        signal,
      );
      return context.json(
        action === "save"
          ? { id_slot: slot, filename, n_saved: tokens, n_written: bytes, timings: { save_ms: milliseconds } }
          : {
              id_slot: slot,
              filename,
              n_restored: tokens,
              n_read: bytes,
              timings: { restore_ms: milliseconds },
            },
      );
    },
  });
}

function parseSlot(text: string | undefined): number {
  if (text !== undefined && SLOT_NUMBER.test(text)) return Number(text);
  throw new ServiceError("invalid_parameter", "The path must end with the number of a slot, as in /slots/0.");
}
