import { z } from "zod";
import { pathName, optional } from "../../http/input/common-fields.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { SlotList, SlotTransfer } from "../../models/slots/model-slots.ts";
import type { ManagementServices } from "./management-services.ts";

const MAX_SLOT = 63;
/** Maximum length of a saved prompt's name; src/models/slots/saved-folder.ts checks its characters. */
const MAX_SAVED_NAME_LENGTH = 64;

const slotField = z.int().min(0).max(MAX_SLOT);
const savedNameField = z
  .string()
  .min(1)
  .max(MAX_SAVED_NAME_LENGTH)
  .describe("Name of the saved prompt: letters, digits, dots, hyphens and underscores.");

const slotRequestSchema = z
  .object({
    action: z.enum(["save", "restore", "erase"]),
    name: optional(savedNameField, "Name of the saved prompt, required by save and restore."),
    slot: optional(
      slotField,
      "Slot, required by erase. Default: save uses the most recently used slot; restore an empty one, otherwise the least recently used.",
    ),
  })
  .refine(({ action, name: savedName }) => action === "erase" || savedName != null, {
    path: ["name"],
    error: "is required to save and to restore",
  })
  .refine(({ action, slot: slotIndex }) => action !== "erase" || slotIndex != null, {
    path: ["slot"],
    error: "is required to erase",
  });

const slotResultSchema = z.object({
  status: z.enum(["saved", "restored", "erased"]),
  slot: z.int(),
  name: z.string().optional(),
  tokens: z.int().describe("Tokens in the prompt."),
  state_bytes: z.int().optional().describe("Bytes of the KV cache state."),
  ms: z.number().optional().describe("Duration in milliseconds."),
});

const slotListSchema = z.object({
  slots: z
    .array(z.object({ slot: z.int(), tokens: z.int(), busy: z.boolean() }))
    .describe("Slots of the model; empty while it is not loaded."),
  saved: z
    .array(
      z.object({
        name: z.string(),
        automatic: z.boolean().describe("Saved when the model was unloaded, and restored when it is loaded."),
        damaged: z.boolean(),
        tokens: z.int(),
        size_bytes: z.int().describe("Bytes on disk."),
        saved_at: z.iso.datetime(),
      }),
    )
    .describe("Saved prompts of the model, newest first."),
});

const savedQuerySchema = z.object({ name: savedNameField });

const savedDeletedSchema = z.object({ status: z.literal("deleted"), name: z.string() });

const tag = "Saved prompts";
/** Hub specs contain slashes, so a name can span several path segments. */
const PATH = "/api/models/:name{.+}/slots";

/** Routes for the slots of models and for saved prompts. */
export function slotRoutes({ models }: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      method: "GET",
      path: PATH,
      tag,
      summary: "List the slots of a model and its saved prompts",
      answers: [{ description: "The slots and the saved prompts.", schema: slotListSchema }],
      async handle(context) {
        return context.json(slotListJson(await models.slots.list(pathName(context), context.req.raw.signal)));
      },
    }),
    defineRoute({
      method: "POST",
      path: PATH,
      tag,
      summary: "Save, restore or erase a slot of a model",
      description:
        "A saved prompt contains a slot's tokens and their KV cache state, so that a request with the same prefix skips their prefill, also after a restart. It can only be restored with the same model file, adapters, load settings and version of Daybreak. Prompts with images or audio, and those of recurrent and hybrid models, cannot be saved.",
      body: slotRequestSchema,
      answers: [{ description: "The result.", schema: slotResultSchema }],
      async handle(context, { body }) {
        const model = pathName(context);
        const { signal } = context.req.raw;
        const { action, name, slot } = body;
        if (action === "erase" || name == null) {
          const tokens = await models.slots.erase(model, slot ?? 0, signal);
          return context.json({ status: "erased", slot: slot ?? 0, tokens });
        }
        const target = { name, slot: slot ?? undefined };
        const json =
          action === "save"
            ? transferJson("saved", await models.slots.save(model, target, signal))
            : transferJson("restored", await models.slots.restore(model, target, signal));
        return context.json(json);
      },
    }),
    defineRoute({
      method: "DELETE",
      path: PATH,
      tag,
      summary: "Delete a saved prompt",
      query: savedQuerySchema,
      answers: [{ description: "The saved prompt has been deleted.", schema: savedDeletedSchema }],
      async handle(context, { query: { name } }) {
        await models.slots.delete(pathName(context), name);
        return context.json({ status: "deleted", name });
      },
    }),
  ];
}

function slotListJson({ slots, saved }: SlotList): z.infer<typeof slotListSchema> {
  return {
    slots: slots.map(({ id, tokens, isBusy }) => ({ slot: id, tokens, busy: isBusy })),
    saved: saved.map(({ name, isAutomatic, bytes, savedAt, header }) => ({
      name,
      automatic: isAutomatic,
      damaged: header === undefined,
      tokens: header?.tokens ?? 0,
      size_bytes: bytes,
      saved_at: new Date(savedAt).toISOString(),
    })),
  };
}

function transferJson(
  status: "saved" | "restored",
  { slot, name, tokens, bytes, milliseconds }: SlotTransfer,
): z.infer<typeof slotResultSchema> {
  return { status, slot, name, tokens, state_bytes: bytes, ms: Math.round(milliseconds * 10) / 10 };
}
