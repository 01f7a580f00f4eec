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
      "engine-restarted",
      "gpu-lost",
      "gpu-abandoned",
    ]),
    model: z.string(),
    time: z.string().describe("ISO 8601."),
    size_bytes: z.int().optional(),
    reason: z.string().optional(),
    code: z.string().optional(),
    message: z.string().optional(),
  })
  .meta({ id: "ServiceEvent" });
