import type { z } from "zod";
import type { Batch, StoredFile } from "../../../batches/batch.ts";
import type { batchSchema, fileSchema } from "../../wire/openai-batches.ts";

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

/** Converts a time to Unix seconds, the format of all times in this API. */
function toSeconds(millis: number): number {
  return Math.floor(millis / 1000);
}
