import { z } from "zod";

/** The levels of the log, the least important first. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const number = z
  .int()
  .describe("Rises from one thing that happened to the next, over restarts of the daemon too.");

const requestSchema = z
  .object({
    number,
    id: z.string().describe("As in x-request-id."),
    time: z.string().describe("When it arrived, ISO 8601."),
    method: z.string().describe("WS: a chat over a WebSocket. FLEET: work for another machine."),
    path: z.string().describe("Without the query; the beginning of a long one."),
    status: z.int(),
    ms: z.int().describe("Milliseconds until its answer had been sent."),
    aborted: z.boolean().describe("The client left before its answer was complete."),
    failure: z
      .string()
      .optional()
      .describe("Code of the error that ended its answer, perhaps after the status had been sent."),
    model: z.string().optional().describe("The model that answered."),
    prompt_tokens: z.int().optional(),
    cached_tokens: z.int().optional().describe("Prompt tokens that were found in the KV cache."),
    completion_tokens: z.int().optional(),
    first_token_ms: z.int().optional().describe("Milliseconds until the first token."),
    tokens_per_second: z.number().optional(),
  })
  .meta({ id: "PastRequest" });

const logSchema = z
  .object({
    number,
    time: z.string().describe("ISO 8601."),
    level: z.enum(LOG_LEVELS),
    message: z.string(),
    fields: z.record(z.string(), z.unknown()).describe("As the log has them; never bodies, keys or headers."),
  })
  .meta({ id: "LogRecord" });

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

export const activitySchema = z
  .object({
    next: z.int().describe("To give as `after` next time, for what happens from now on."),
    requests: z
      .array(requestSchema)
      .describe(
        "Requests that have ended, the oldest first: the last with a model, and the last of all others.",
      ),
    events: z.array(eventSchema.extend({ number })).describe("What /api/events has told, the oldest first."),
    logs: z.array(logSchema).describe("Records of the log at its configured level, the oldest first."),
  })
  .meta({ id: "Activity" });

/** What the daemon remembers of what has happened. */
export type ActivityReport = z.output<typeof activitySchema>;
export type PastRequest = ActivityReport["requests"][number];
export type PastLog = ActivityReport["logs"][number];
