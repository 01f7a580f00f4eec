import { z } from "zod";

/** An event of /api/events. */
export const eventSchema = z
  .object({
    type: z.enum([
      "model-downloaded",
      "model-loaded",
      "model-unloaded",
      "model-failed",
      "model-deleted",
      "model-created",
      "batch-created",
      "batch-ended",
      "engine-restarted",
      "gpu-lost",
      "gpu-abandoned",
    ]),
    model: z.string().optional(),
    batch: z.string().optional(),
    time: z.string().describe("ISO 8601."),
    size_bytes: z.int().optional(),
    reason: z.string().optional(),
    code: z.string().optional(),
    message: z.string().optional(),
    status: z.string().optional().describe("How the batch ended."),
    lines: z.int().optional().describe("Its requests."),
    failed: z.int().optional().describe("Those of them that did not succeed."),
  })
  .meta({ id: "ServiceEvent" });
