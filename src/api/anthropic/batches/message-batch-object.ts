import { z } from "zod";
import type { AnsweredLine, Batch, BatchFormat, BatchUsage } from "../../../batches/batch.ts";
import { anthropicErrorBody } from "../anthropic-error.ts";
import { pageSchema } from "../model-list.ts";

const time = z.string().describe("RFC 3339.");

export const messageBatchSchema = z
  .object({
    id: z.string(),
    type: z.literal("message_batch"),
    processing_status: z.enum(["in_progress", "canceling", "ended"]),
    request_counts: z
      .object({
        processing: z.int(),
        succeeded: z.int(),
        errored: z.int(),
        canceled: z.int(),
        expired: z.int(),
      })
      .describe("All requests count as processing until the batch has ended."),
    created_at: time,
    expires_at: time,
    ended_at: time.nullable(),
    cancel_initiated_at: time.nullable(),
    archived_at: z.null(),
    results_url: z.string().nullable().describe("Path of the results; null until the batch has ended."),
    waiting: z
      .string()
      .optional()
      .describe('Daybreak extension: why its requests wait, such as "waits for a machine that has tiny".'),
  })
  .meta({ id: "MessageBatch" });

export const messageBatchListSchema = pageSchema(messageBatchSchema).meta({ id: "MessageBatchList" });

export const deletedMessageBatchSchema = z
  .object({ id: z.string(), type: z.literal("message_batch_deleted") })
  .meta({ id: "DeletedMessageBatch" });

/**
 * Converts a batch to this API's format.
 * @param origin origin of the request's URL, for results_url; behind a proxy it differs from the daemon's address
 */
export function toMessageBatch(batch: Batch, origin: string): z.output<typeof messageBatchSchema> {
  const { id, times, counts } = batch;
  const endedAt = times.completed ?? times.failed ?? times.expired ?? times.cancelled;
  const { succeeded, errored, cancelled: canceled, expired } = counts;
  return {
    id,
    type: "message_batch",
    processing_status:
      endedAt === undefined ? (times.cancelling === undefined ? "in_progress" : "canceling") : "ended",
    request_counts:
      endedAt === undefined
        ? { processing: requestCount(batch), succeeded: 0, errored: 0, canceled: 0, expired: 0 }
        : { processing: 0, succeeded, errored, canceled, expired },
    created_at: toTime(batch.createdAt),
    expires_at: toTime(batch.expiresAt),
    ended_at: endedAt === undefined ? null : toTime(endedAt),
    cancel_initiated_at: times.cancelling === undefined ? null : toTime(times.cancelling),
    archived_at: null,
    results_url: batch.outputFile === undefined ? null : `${origin}/v1/messages/batches/${id}/results`,
    ...(batch.waiting !== undefined && { waiting: batch.waiting }),
  };
}

/** Number of requests. `total` is 0 until the input file has been read; the number sent is in the metadata. */
function requestCount({ total, metadata }: Batch): number {
  return total || Number(metadata?.["requests"] ?? 0);
}

function toTime(millis: number): string {
  return new Date(millis).toISOString();
}

/** Format name in the batch store. */
export const ANTHROPIC_BATCHES = "anthropic";
export const MESSAGES_PATH = "/v1/messages";

/** Format of IDs that this API requires. */
export const customIdSchema = z
  .string()
  .regex(/^[\w-]{1,64}$/, { error: "must have 1 to 64 letters, digits, hyphens and underscores" });

/** Line of a batch's input file. `params` is validated when the request runs. */
const lineSchema = z.object({
  custom_id: customIdSchema,
  params: z.looseObject({}),
});

const tokens = z.number().default(0);
const usageSchema = z.object({
  usage: z.object({ input_tokens: tokens, cache_read_input_tokens: tokens, output_tokens: tokens }),
});

/** Batch format of /v1/messages/batches. */
export const messageBatchFormat: BatchFormat = {
  endpoints: [MESSAGES_PATH],
  separatesErrors: false,
  parseLine(value) {
    const { data } = lineSchema.safeParse(value);
    if (!data) return { code: "invalid_request", message: "This is not a request of a batch.", param: null };
    const { model, system, tools, messages } = data.params;
    const messageParts: readonly unknown[] = Array.isArray(messages) ? messages : [];
    const prefix = [system, tools, ...messageParts].flatMap((part) =>
      part == null ? [] : [JSON.stringify(part)],
    );
    return { customId: data.custom_id, model: typeof model === "string" ? model : "", prefix };
  },
  request(value) {
    const { params } = lineSchema.parse(value);
    return { path: MESSAGES_PATH, body: JSON.stringify(params) };
  },
  error: (error, requestId) => JSON.stringify(anthropicErrorBody(error, requestId)),
  usageOf(body): BatchUsage {
    const usage = usageSchema.safeParse(body).data?.usage;
    const cachedTokens = usage?.cache_read_input_tokens ?? 0;
    const inputTokens = (usage?.input_tokens ?? 0) + cachedTokens;
    return { inputTokens, cachedTokens, outputTokens: usage?.output_tokens ?? 0, reasoningTokens: 0 };
  },
  formatAnswer: writeLine,
};

/** Formats a result. The answer's body is copied unchanged. */
function writeLine({ customId, outcome, answer }: AnsweredLine): string {
  return `{"custom_id":${JSON.stringify(customId)},"result":${resultJson(outcome, answer?.body)}}`;
}

function resultJson(outcome: AnsweredLine["outcome"], body: string | undefined): string {
  if (body === undefined) return outcome === "cancelled" ? '{"type":"canceled"}' : '{"type":"expired"}';
  return outcome === "succeeded"
    ? `{"type":"succeeded","message":${body}}`
    : `{"type":"errored","error":${body}}`;
}
