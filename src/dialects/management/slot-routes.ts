import type { z } from "zod";
import { pathName } from "../../http/input/path-name.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { SlotList, SlotTransfer } from "../../models/slots/model-slots.ts";
import type { ManagementServices } from "./management-services.ts";
import * as schemas from "./slot-schemas.ts";

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
      answers: [{ description: "The slots and the saved prompts.", schema: schemas.slotListSchema }],
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
      body: schemas.slotRequestSchema,
      answers: [{ description: "It is done.", schema: schemas.slotResultSchema }],
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
      query: schemas.savedQuerySchema,
      answers: [{ description: "It is deleted.", schema: schemas.savedDeletedSchema }],
      async handle(context, { query: { name } }) {
        await models.slots.delete(pathName(context), name);
        return context.json({ status: "deleted", name });
      },
    }),
  ];
}

function slotListJson({ slots, saved }: SlotList): z.infer<typeof schemas.slotListSchema> {
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
): z.infer<typeof schemas.slotResultSchema> {
  return { status, slot, name, tokens, state_bytes: bytes, ms: Math.round(milliseconds * 10) / 10 };
}
