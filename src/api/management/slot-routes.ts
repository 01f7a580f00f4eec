import { z } from "zod";
import { pathName } from "../../http/input/common-fields.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { SlotList, SlotTransfer } from "../../models/slots/model-slots.ts";
import type { ManagementServices } from "./management-services.ts";

const MAX_SLOT = 63;
/** As long as the names of saved prompts may be; src/models/slots/saved-folder.ts says which characters they may have. */
const MAX_NAME = 64;

const slotSchemasSlot = z.int().min(0).max(MAX_SLOT);
const slotSchemasName = z
  .string()
  .min(1)
  .max(MAX_NAME)
  .describe("Name of the saved prompt: letters, digits, dots, hyphens and underscores.");

export const slotRequestSchema = z
  .object({
    action: z.enum(["save", "restore", "erase"]),
    name: slotSchemasName.nullish().describe("Name of the saved prompt; save and restore need it."),
    slot: slotSchemasSlot
      .nullish()
      .describe(
        "The slot. By default the one used last is saved, and an empty one is restored, or else the one used least recently; erase needs it.",
      ),
  })
  .refine(({ action, name: given }) => action === "erase" || given != null, {
    path: ["name"],
    error: "is needed to save and to restore",
  })
  .refine(({ action, slot: given }) => action !== "erase" || given != null, {
    path: ["slot"],
    error: "is needed to erase",
  });

export const slotResultSchema = z.object({
  status: z.enum(["saved", "restored", "erased"]),
  slot: z.int(),
  name: z.string().optional(),
  tokens: z.int().describe("Tokens of the prompt."),
  state_bytes: z.int().optional().describe("Bytes of what the model has computed of them."),
  ms: z.number().optional().describe("How long it took, in milliseconds."),
});

export const slotListSchema = z.object({
  slots: z
    .array(z.object({ slot: z.int(), tokens: z.int(), busy: z.boolean() }))
    .describe("The slots of the model; none while it is not loaded."),
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
    .describe("The saved prompts of the model, the newest first."),
});

export const savedQuerySchema = z.object({ name: slotSchemasName });

export const savedDeletedSchema = z.object({ status: z.literal("deleted"), name: z.string() });

const tag = "Saved prompts";
/** Hub specs contain slashes, so a name can span several path segments. */
const PATH = "/api/models/:name{.+}/slots";

/** The routes for what the slots of models hold, and for what of it is saved. */
export function slotRoutes({ models }: Pick<ManagementServices, "models">): readonly Route[] {
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
      summary: "Save, restore or empty a slot of a model",
      description:
        "A saved prompt holds a slot's tokens and what the model has computed of them, so that a request that begins with them is answered without reading them again, also after a restart. It fits the same model file, adapters, load settings and version of Daybreak. Prompts with images or recordings, and those of recurrent and hybrid models, cannot be saved.",
      body: slotRequestSchema,
      answers: [{ description: "It is done.", schema: slotResultSchema }],
      async handle(context, { body }) {
        const model = pathName(context);
        const { signal } = context.req.raw;
        const { action, name, slot } = body;
        if (action === "erase" || name == null) {
          const tokens = await models.slots.erase(model, slot ?? 0, signal);
          return context.json({ status: "erased", slot: slot ?? 0, tokens });
        }
        const wanted = { name, slot: slot ?? undefined };
        const json =
          action === "save"
            ? transferJson("saved", await models.slots.save(model, wanted, signal))
            : transferJson("restored", await models.slots.restore(model, wanted, signal));
        return context.json(json);
      },
    }),
    defineRoute({
      method: "DELETE",
      path: PATH,
      tag,
      summary: "Delete a saved prompt",
      query: savedQuerySchema,
      answers: [{ description: "It is deleted.", schema: savedDeletedSchema }],
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
