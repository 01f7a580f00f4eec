import { z } from "zod";

/** Parts of files and batches, as every store that keeps them reads them back. */

export const purposeSchema = z.enum(["batch", "batch_output", "requests", "results"]);

export const finalStatusSchema = z.enum(["completed", "failed", "expired", "cancelled"]);

export const statusSchema = z.enum([
  "validating",
  "in_progress",
  "finalizing",
  "cancelling",
  ...finalStatusSchema.options,
]);

export const problemsSchema = z.array(
  z.object({
    code: z.string(),
    message: z.string(),
    param: z.string().nullable(),
    line: z.number().nullable(),
  }),
);
