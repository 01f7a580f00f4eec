import { z } from "zod";
import { modelNameSchema } from "../../http/input/known-fields.ts";
import { FILE_TYPES } from "../../models/quantize/file-types.ts";

const names = FILE_TYPES.map(({ name }) => name).join(", ");

export const quantizeRequestSchema = z.object({
  source: modelNameSchema.describe("Model to quantize: a name, a hub spec, or the path of a GGUF file."),
  destination: modelNameSchema.describe(
    "Name of the new model. One that was created before is replaced; its settings are those of the source.",
  ),
  quantization: z.string().min(1).describe(`One of ${names}.`),
  allow_requantize: z
    .boolean()
    .nullable()
    .default(false)
    .describe("Quantize weights that are quantized already, which costs quality."),
  stream: z.boolean().nullable().default(false).describe("Stream progress as lines of JSON."),
});

export const quantizeResultSchema = z.object({
  status: z.literal("success"),
  model: z.string(),
  quantization: z.string(),
  size_bytes: z.int().describe("Of the new file."),
  source_bytes: z.int().describe("Of the weights before."),
  bits_per_weight: z.number(),
  fallback_tensors: z
    .int()
    .describe("Tensors of another type than usual, because its blocks do not divide their rows."),
});

export const quantizeLineSchema = z.union([
  z.object({
    status: z.literal("quantizing"),
    progress: z.number().min(0).max(1),
    completed_bytes: z.int().describe("Bytes of the new file that are written."),
    total_bytes: z.int(),
  }),
  quantizeResultSchema,
]);
export type QuantizeLine = z.infer<typeof quantizeLineSchema>;
