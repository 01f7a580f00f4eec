import { z } from "zod";

const MAX_SLOT = 63;
/** As long as the names of saved prompts may be; src/models/slots/saved-folder.ts says which characters they may have. */
const MAX_NAME = 64;

const slot = z.int().min(0).max(MAX_SLOT);
const name = z
  .string()
  .min(1)
  .max(MAX_NAME)
  .describe("Name of the saved prompt: letters, digits, dots, hyphens and underscores.");

export const slotRequestSchema = z
  .object({
    action: z.enum(["save", "restore", "erase"]),
    name: name.nullish().describe("Name of the saved prompt; save and restore need it."),
    slot: slot
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

export const savedQuerySchema = z.object({ name });

export const savedDeletedSchema = z.object({ status: z.literal("deleted"), name: z.string() });
