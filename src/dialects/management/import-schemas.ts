import { z } from "zod";
import { list } from "../../http/input/bounded-lists.ts";
import { modelNameSchema } from "../../http/input/known-fields.ts";
import { MAX_PATH_LENGTH } from "./model-schemas.ts";

export const importRequestSchema = z.object({
  from: z
    .string()
    .min(1)
    .max(MAX_PATH_LENGTH)
    .describe(
      "ollama, lmstudio or hf, for the folder where that program keeps its models; or the absolute path of a folder.",
    ),
  models: list(modelNameSchema)
    .nullish()
    .describe("Only these, by the names that they have there. Default: all."),
  copy: z
    .boolean()
    .nullish()
    .describe("Copy files that cannot be cloned or linked, instead of using them where they are."),
  stream: z.boolean().nullish().describe("Stream progress as lines of JSON."),
});

const name = z.string().describe("Name in the folder that it came from.");
const bytes = z.int().min(0);

const importedSchema = z.object({
  status: z
    .enum(["imported", "updated", "present"])
    .describe("present: an earlier import has brought it, and nothing has changed since."),
  name,
  alias: z.string().describe("Name of the model here."),
  files: z
    .enum(["cloned", "linked", "copied", "in place"])
    .describe(
      "How its files are had: as clones or links, which take no space and stay when its program deletes them; as copies; or where they are.",
    ),
  size_bytes: bytes,
  notes: z
    .array(z.string())
    .optional()
    .describe("What could not be kept, or has no effect here, in sentences."),
});
const skippedSchema = z.object({
  status: z.literal("skipped"),
  name,
  reason: z.string().describe("Why it cannot be used, without a period."),
});
const outcomeSchema = z.union([importedSchema, skippedSchema]);
export type ImportOutcome = z.infer<typeof outcomeSchema>;

export const importResultSchema = z.object({
  status: z.literal("success"),
  folder: z.string().describe("Where they came from."),
  models: z.array(outcomeSchema),
});

export const importLineSchema = z.union([
  z.object({
    status: z.literal("reading"),
    folder: z.string(),
    models: z.int().describe("How many will be imported."),
  }),
  z.object({ status: z.literal("copying"), name, copied_bytes: bytes, total_bytes: bytes }),
  importedSchema,
  skippedSchema,
  z.object({ status: z.literal("success") }),
]);
export type ImportLine = z.infer<typeof importLineSchema>;
