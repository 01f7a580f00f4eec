import { z } from "zod";

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
