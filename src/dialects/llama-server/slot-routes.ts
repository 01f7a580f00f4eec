import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { modelName } from "../../http/input/known-fields.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { assertSavedName } from "../../models/slots/saved-name.ts";
import type { ModelServices } from "../services.ts";
import { modelField } from "./completion-schema.ts";
import { requiredModel } from "./required-model.ts";

const tag = "llama-server";
/** As long as the names of saved prompts may be. */
const MAX_NAME = 64;
const SLOT = /^\d+$/;

const slotsSchema = z
  .array(
    z.object({
      id: z.int(),
      n_ctx: z.int(),
      speculative: z.literal(false),
      is_processing: z.boolean(),
      n_prompt_tokens: z.int().describe("Tokens that are in its KV cache."),
    }),
  )
  .meta({ id: "LlamaServerSlots" });

/** GET /slots. */
export function slotsRoute({ models }: ModelServices): Route {
  return defineRoute({
    method: "GET",
    path: "/slots",
    tag,
    summary: "List what the slots of a model are doing",
    description: "There are none while the model is not loaded.",
    query: z.object({
      model: modelName.optional().describe("Model name. Default: the daemon's default model."),
      fail_on_no_slot: z.string().optional().describe("1: 503 when no slot is free."),
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
    filename: z
      .string()
      .min(1)
      .max(MAX_NAME)
      .nullish()
      .describe(
        "Name of the saved prompt, which save and restore need: letters, digits, dots, hyphens and underscores.",
      ),
  })
  .meta({ id: "LlamaServerSlotRequest" });

const names = { id_slot: z.int(), filename: z.string() };
const slotResultSchema = z
  .union([
    z.object({ ...names, n_saved: z.int(), n_written: z.int(), timings: z.object({ save_ms: z.number() }) }),
    z.object({
      ...names,
      n_restored: z.int(),
      n_read: z.int(),
      timings: z.object({ restore_ms: z.number() }),
    }),
    z.object({ id_slot: z.int(), n_erased: z.int() }),
  ])
  .describe("In tokens, bytes of the state, and milliseconds.")
  .meta({ id: "LlamaServerSlotResult" });

/** POST /slots/{id}?action=save, restore or erase. */
export function slotActionRoute({ models }: ModelServices): Route {
  return defineRoute({
    method: "POST",
    path: "/slots/:id",
    tag,
    summary: "Save, restore or empty a slot",
    description: "Saved prompts are those of POST /api/models/{name}/slots.",
    query: z.object({ action: z.enum(["save", "restore", "erase"]).describe("What to do with the slot.") }),
    body: slotRequestSchema,
    // llama.cpp's server reads none to erase.
    bodyWhenEmpty: {},
    answers: [{ description: "It is done.", schema: slotResultSchema }],
    async handle(context, { query: { action }, body }) {
      const { signal } = context.req.raw;
      const slot = slotOf(context.req.param("id"));
      const { alias } = await requiredModel(models, body.model);
      if (action === "erase") {
        return context.json({ id_slot: slot, n_erased: await models.slots.erase(alias, slot, signal) });
      }
      const { filename } = body;
      if (filename == null) {
        throw new ServiceError("invalid_parameter", "filename: is missing.", { param: "filename" });
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

function slotOf(text: string | undefined): number {
  if (text !== undefined && SLOT.test(text)) return Number(text);
  throw new ServiceError("invalid_parameter", "The path must have the number of a slot: /slots/0.");
}
