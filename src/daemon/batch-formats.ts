import type { BatchFormat } from "../batches/batch-format.ts";
import { ANTHROPIC_BATCHES, messageBatchFormat } from "../dialects/anthropic/batches/message-batch-format.ts";
import { OPENAI_BATCHES, openaiBatchFormat } from "../dialects/openai/batches/openai-batch-format.ts";

/** How the APIs write batches down. */
export const BATCH_FORMATS: Readonly<Record<string, BatchFormat>> = {
  [OPENAI_BATCHES]: openaiBatchFormat,
  [ANTHROPIC_BATCHES]: messageBatchFormat,
};
