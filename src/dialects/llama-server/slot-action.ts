import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { modelName } from "../../http/input/known-fields.ts";
import { readJson } from "../../http/input/read-json.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { ModelServices } from "../services.ts";
import { requiredModel } from "./required-model.ts";

/** As long as the name of a saved prompt may be; src/models/slots/saved-folder.ts says which characters it may have. */
const MAX_FILENAME = 64;

const bodySchema = z.object({
  filename: z.string().min(1).max(MAX_FILENAME),
  model: modelName.nullish(),
});

const slotId = z.coerce.number().int().min(0).max(63);

const resultSchema = z
  .object({
    id_slot: z.int(),
    filename: z.string().optional(),
    n_saved: z.int().optional().describe("Tokens that were saved."),
    n_written: z.int().optional().describe("Bytes that were written of what the model has computed of them."),
    n_restored: z.int().optional(),
    n_read: z.int().optional(),
    n_erased: z.int().optional(),
    timings: z.object({ save_ms: z.number().optional(), restore_ms: z.number().optional() }).optional(),
  })
  .meta({ id: "LlamaServerSlotAction" });

/** POST /slots/{id}?action=save, restore or erase: the saved prompts of /api/models/{name}/slots. */
export function slotActionRoute({ models }: Pick<ModelServices, "models">): Route {
  return defineRoute({
    method: "POST",
    path: "/slots/:id",
    tag: "llama-server",
    summary: "Save, restore or erase the prompt of a slot",
    description:
      'save and restore take a body, {"filename": "story"}: the name of a saved prompt of letters, digits, dots, hyphens and underscores, as in /api/models/{name}/slots; erase takes none. A model that is not the default one is named by `model`, in the body or the query.',
    query: z.object({
      action: z.enum(["save", "restore", "erase"]),
      model: modelName.optional().describe("Model name, if it is not in the body."),
    }),
    answers: [{ description: "It is done.", schema: resultSchema }],
    async handle(context, { query }) {
      const slot = readSlot(context.req.param("id"));
      const { signal } = context.req.raw;
      if (query.action === "erase") {
        const { alias } = await requiredModel(models, query.model);
        const erased = await models.slots.erase(alias, slot, signal);
        return context.json({ id_slot: slot, n_erased: erased } satisfies z.output<typeof resultSchema>);
      }
      const { filename: name, model } = await readJson(context, bodySchema);
      const { alias } = await requiredModel(models, model ?? query.model);
      const isSave = query.action === "save";
      const { tokens, bytes, milliseconds } = isSave
        ? await models.slots.save(alias, { slot, name }, signal)
        : await models.slots.restore(alias, { slot, name }, signal);
      return context.json({
        id_slot: slot,
        filename: name,
        ...(isSave
          ? { n_saved: tokens, n_written: bytes, timings: { save_ms: milliseconds } }
          : { n_restored: tokens, n_read: bytes, timings: { restore_ms: milliseconds } }),
      } satisfies z.output<typeof resultSchema>);
    },
  });
}

function readSlot(text: string | undefined): number {
  const read = slotId.safeParse(text);
  if (read.success) return read.data;
  throw new ServiceError(
    "invalid_parameter",
    "The slot in the path must be a number from 0; GET /slots lists them.",
    {
      param: "id_slot",
    },
  );
}
