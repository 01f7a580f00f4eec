import { z } from "zod";
import type { AnsweredLine, Batch, StoredFile, PendingLine } from "../batch.ts";
import { finalStatusSchema, problemsSchema, purposeSchema, statusSchema } from "../batch-store.ts";
import type { Row } from "./database.ts";

const fileRow = z.object({
  id: z.string(),
  owner: z.string(),
  purpose: purposeSchema,
  name: z.string(),
  bytes: z.number(),
  created: z.number(),
  expires: z.number().nullable(),
});

/** Fields that no query searches, stored as JSON. */
const detailsSchema = z.object({
  endpoint: z.string(),
  inputFile: z.string(),
  times: z.partialRecord(statusSchema, z.number()),
  expiresAt: z.number(),
  /** Null means forever: JSON has no Infinity. */
  outputLifeMs: z.number().nullable(),
  metadata: z.record(z.string(), z.string()).nullable(),
  problems: problemsSchema,
  outputFile: z.string().optional(),
  errorFile: z.string().optional(),
  endsAs: finalStatusSchema.optional(),
});

const batchRow = z.object({
  id: z.string(),
  owner: z.string(),
  api: z.string(),
  status: statusSchema,
  created: z.number(),
  details: z.string(),
  total: z.number(),
  succeeded: z.number(),
  errored: z.number(),
  cancelled: z.number(),
  expired: z.number(),
  input_tokens: z.number(),
  cached_tokens: z.number(),
  output_tokens: z.number(),
  reasoning_tokens: z.number(),
});

const lineRow = z.object({
  number: z.number(),
  custom_id: z.string(),
  model: z.string(),
  place: z.string(),
  start: z.number(),
  length: z.number(),
});

const answerRow = z.object({
  number: z.number(),
  custom_id: z.string(),
  outcome: z.enum(["succeeded", "errored", "cancelled", "expired"]),
  status: z.number().nullable(),
  request_id: z.string().nullable(),
  body: z.string().nullable(),
});

export function toFile(row: Row): StoredFile {
  const { created, expires, ...rest } = fileRow.parse(row);
  return { ...rest, createdAt: created, expiresAt: expires ?? Number.POSITIVE_INFINITY };
}

/** Returns null for Infinity. */
export function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

export function toBatch(row: Row): Batch {
  const parsed = batchRow.parse(row);
  const { id, owner, api, created, total, succeeded, errored, cancelled, expired } = parsed;
  const { outputLifeMs, ...details } = detailsSchema.parse(JSON.parse(parsed.details));
  return {
    ...details,
    id,
    owner,
    api,
    status: parsed.status,
    createdAt: created,
    outputLifeMs: outputLifeMs ?? Number.POSITIVE_INFINITY,
    total,
    counts: { succeeded, errored, cancelled, expired },
    usage: {
      inputTokens: parsed.input_tokens,
      cachedTokens: parsed.cached_tokens,
      outputTokens: parsed.output_tokens,
      reasoningTokens: parsed.reasoning_tokens,
    },
  };
}

/** Returns the JSON of the column `details`. */
export function detailsOf(batch: Batch): string {
  const { endpoint, inputFile, times, expiresAt, outputLifeMs, metadata, problems } = batch;
  const { outputFile, errorFile, endsAs } = batch;
  const details: z.input<typeof detailsSchema> = {
    endpoint,
    inputFile,
    times,
    expiresAt,
    outputLifeMs: finiteOrNull(outputLifeMs),
    metadata: metadata && { ...metadata },
    problems: [...problems],
    outputFile,
    errorFile,
    endsAs,
  };
  return JSON.stringify(details);
}

export function toLine(row: Row): PendingLine {
  const { custom_id: customId, place: sortKey, ...rest } = lineRow.parse(row);
  return { ...rest, customId, sortKey };
}

export function toAnswer(row: Row): AnsweredLine {
  const {
    number,
    custom_id: customId,
    outcome,
    status: code,
    request_id: requestId,
    body,
  } = answerRow.parse(row);
  if (code === null || requestId === null || body === null) return { number, customId, outcome };
  return { number, customId, outcome, answer: { status: code, requestId, body } };
}
