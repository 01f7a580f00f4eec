import { z } from "zod";

/** Log levels, least severe first. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const number = z.int().describe("Sequence number; increases across restarts of the daemon too.");

const requestSchema = z
  .object({
    number,
    id: z.string().describe("Value of x-request-id."),
    time: z.string().describe("When it arrived, ISO 8601."),
    method: z
      .string()
      .describe("HTTP method; WS: a chat over a WebSocket; FLEET: a request of another machine."),
    path: z.string().describe("Path without the query, truncated if long."),
    status: z.int(),
    ms: z.int().describe("Milliseconds until the answer was sent."),
    aborted: z.boolean().describe("The client disconnected before the answer was complete."),
    failure: z
      .string()
      .optional()
      .describe("Code of the error that ended the answer, possibly after the status was sent."),
    model: z.string().optional().describe("The model that answered."),
    prompt_tokens: z.int().optional(),
    cached_tokens: z.int().optional().describe("Prompt tokens reused from the KV cache."),
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
    fields: z
      .record(z.string(), z.unknown())
      .describe("Fields of the log record; never bodies, keys or headers."),
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
    lines: z.int().optional().describe("Number of its requests."),
    failed: z.int().optional().describe("Number of its requests that did not succeed."),
  })
  .meta({ id: "ServiceEvent" });

export const activitySchema = z
  .object({
    next: z.int().describe("Value of `after` for the next call, to get only what is newer."),
    requests: z
      .array(requestSchema)
      .describe("Ended requests, oldest first: the latest with a model, and the latest of all others."),
    events: z.array(eventSchema.extend({ number })).describe("Events of /api/events, oldest first."),
    logs: z.array(logSchema).describe("Log records at the configured level, oldest first."),
  })
  .meta({ id: "Activity" });

/** Recent requests, events and log records in the daemon's memory. */
export type ActivityReport = z.output<typeof activitySchema>;
export type PastRequest = ActivityReport["requests"][number];
export type PastLog = ActivityReport["logs"][number];
