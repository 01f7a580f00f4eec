import { z } from "zod";
import type { Page } from "../../../batches/batch-store.ts";
import type { Batch, StoredFile } from "../../../batches/batch.ts";

const time = z.int().nullable().describe("Unix seconds.");

const problemSchema = z.object({
  code: z.string(),
  message: z.string(),
  param: z.string().nullable(),
  line: z.int().nullable().describe("Line number, from 1."),
});

export const batchSchema = z
  .object({
    id: z.string(),
    object: z.literal("batch"),
    endpoint: z.string(),
    errors: z
      .object({ object: z.literal("list"), data: z.array(problemSchema) })
      .nullable()
      .describe("Errors in its input lines, if it has failed."),
    input_file_id: z.string(),
    completion_window: z.literal("24h"),
    status: z.enum([
      "validating",
      "failed",
      "in_progress",
      "finalizing",
      "completed",
      "expired",
      "cancelling",
      "cancelled",
    ]),
    output_file_id: z
      .string()
      .nullable()
      .describe("Answers of successful requests; null until the batch has ended."),
    error_file_id: z.string().nullable().describe("Errors of the other requests."),
    created_at: z.int().describe("Unix seconds."),
    in_progress_at: time,
    expires_at: time,
    finalizing_at: time,
    completed_at: time,
    failed_at: time,
    expired_at: time,
    cancelling_at: time,
    cancelled_at: time,
    request_counts: z.object({
      total: z.int(),
      completed: z.int(),
      failed: z.int().describe("Requests that ended without success."),
      unanswered: z
        .int()
        .optional()
        .describe(
          "Daybreak extension: failed requests without an answer when the batch was cancelled or expired.",
        ),
    }),
    usage: z.object({
      input_tokens: z.int(),
      input_tokens_details: z.object({ cached_tokens: z.int() }),
      output_tokens: z.int(),
      output_tokens_details: z.object({ reasoning_tokens: z.int() }),
      total_tokens: z.int(),
    }),
    metadata: z.record(z.string(), z.string()).nullable(),
    waiting: z
      .string()
      .optional()
      .describe('Daybreak extension: why its requests wait, such as "waits for a machine that has tiny".'),
  })
  .meta({ id: "OpenAIBatch" });

export const batchListSchema = listSchema(batchSchema).meta({ id: "OpenAIBatchList" });

export function toBatchObject(batch: Batch): z.output<typeof batchSchema> {
  const { id, endpoint, problems, inputFile, status, outputFile, errorFile, metadata, usage, total } = batch;
  const { succeeded, errored, cancelled, expired } = batch.counts;
  const unanswered = cancelled + expired;
  const at = (reached: Batch["status"]): number | null => {
    const millis = batch.times[reached];
    return millis === undefined ? null : toSeconds(millis);
  };
  return {
    id,
    object: "batch",
    endpoint,
    errors: problems.length > 0 ? { object: "list", data: [...problems] } : null,
    input_file_id: inputFile,
    completion_window: "24h",
    status,
    output_file_id: outputFile ?? null,
    error_file_id: errorFile ?? null,
    created_at: toSeconds(batch.createdAt),
    in_progress_at: at("in_progress"),
    expires_at: toSeconds(batch.expiresAt),
    finalizing_at: at("finalizing"),
    completed_at: at("completed"),
    failed_at: at("failed"),
    expired_at: at("expired"),
    cancelling_at: at("cancelling"),
    cancelled_at: at("cancelled"),
    request_counts: {
      total,
      completed: succeeded,
      failed: errored + unanswered,
      ...(unanswered > 0 && { unanswered }),
    },
    usage: {
      input_tokens: usage.inputTokens,
      input_tokens_details: { cached_tokens: usage.cachedTokens },
      output_tokens: usage.outputTokens,
      output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
      total_tokens: usage.inputTokens + usage.outputTokens,
    },
    metadata: metadata && { ...metadata },
    ...(batch.waiting !== undefined && { waiting: batch.waiting }),
  };
}

export const fileSchema = z
  .object({
    id: z.string(),
    object: z.literal("file"),
    bytes: z.int(),
    created_at: z.int().describe("Unix seconds."),
    expires_at: z.int().optional().describe("Unix seconds; absent: never."),
    filename: z.string(),
    purpose: z.string().describe("batch: uploaded requests; batch_output: results."),
    status: z.literal("processed"),
  })
  .meta({ id: "OpenAIFile" });

export const fileListSchema = listSchema(fileSchema).meta({ id: "OpenAIFileList" });

export const fileDeletedSchema = z
  .object({ id: z.string(), object: z.literal("file"), deleted: z.literal(true) })
  .meta({ id: "OpenAIFileDeleted" });

export function toFileObject(file: StoredFile): z.output<typeof fileSchema> {
  const { id, bytes, createdAt, expiresAt, name, purpose } = file;
  return {
    id,
    object: "file",
    bytes,
    created_at: toSeconds(createdAt),
    ...(Number.isFinite(expiresAt) && { expires_at: toSeconds(expiresAt) }),
    filename: name,
    purpose,
    status: "processed",
  };
}

/** Limits of OpenAI's API for a file's lifetime: an hour and 30 days. */
export const MIN_LIFETIME_SECS = 3600;
export const MAX_LIFETIME_SECS = 30 * 24 * 3600;

/** Schema of a page of a list, with its cursors. */
function listSchema<Item extends z.ZodType>(item: Item) {
  return z.object({
    object: z.literal("list"),
    data: z.array(item),
    first_id: z.string().nullable(),
    last_id: z.string().nullable().describe("Value of `after` for the next page."),
    has_more: z.boolean(),
  });
}

export function toList<Item extends { readonly id: string }, Wire extends object>(
  { items, hasMore }: Page<Item>,
  toWire: (item: Item) => Wire,
) {
  return {
    object: "list" as const,
    data: items.map(toWire),
    first_id: items[0]?.id ?? null,
    last_id: items.at(-1)?.id ?? null,
    has_more: hasMore,
  };
}

/** Converts a time to Unix seconds, the format of all times in this API. */
function toSeconds(millis: number): number {
  return Math.floor(millis / 1000);
}
