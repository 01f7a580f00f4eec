import { z } from "zod";
import { finalStatusSchema, problemsSchema, purposeSchema, statusSchema } from "../../batches/batch-store.ts";
import { type Batch, type IdKind, newId, type StoredFile } from "../../batches/batch.ts";
import { writeJson } from "../wire-format.ts";

/**
 * Files and batches as JetStream has them. Whoever can reach the NATS server may have written them.
 */

const count = z.number().min(0);
/** Null: never, which JSON has no number for. */
const endless = count.nullable().transform((value) => value ?? Number.POSITIVE_INFINITY);

/** Ids of the fleet have an f that no machine's own have; a file that a batch has written carries the batch's digits. */
const SHARED = /^(?:file-|batch_|msgbatch_)f([0-9a-f]{32})([0-9a-f]{8})?$/;

/** Subjects are made of ids, which therefore have no wildcards. */
const batchRecordId = z.string().refine(isSharedId);
const hash = z.string().regex(/^[0-9a-f]{64}$/);

export const fileSchema = z.object({
  id: batchRecordId,
  owner: z.string(),
  purpose: purposeSchema,
  name: z.string(),
  bytes: count,
  createdAt: count,
  expiresAt: endless,
});

/** Of a batch whose lines nobody has queued yet. */
export const NO_QUEUE = "0";

/** Lines of one model. */
const groupSchema = z.object({
  /** As the lines say it; empty: the default model. */
  name: z.string(),
  /** The model that the name meant when the batch began; absent: nobody had one. */
  model: z.object({ files: hash, settings: hash, adapter: z.string().optional() }).optional(),
});
export type LineGroup = z.infer<typeof groupSchema>;

export const batchSchema = z.object({
  id: batchRecordId,
  api: z.string(),
  owner: z.string(),
  endpoint: z.string(),
  inputFile: batchRecordId,
  status: statusSchema,
  times: z.partialRecord(statusSchema, count),
  createdAt: count,
  expiresAt: count,
  outputLifeMs: endless,
  metadata: z.record(z.string(), z.string()).nullable(),
  problems: problemsSchema,
  outputFile: z.string().optional(),
  errorFile: z.string().optional(),
  endsAs: finalStatusSchema.optional(),
  total: count,
  counts: z.object({ succeeded: count, errored: count, cancelled: count, expired: count }),
  usage: z.object({
    inputTokens: count,
    cachedTokens: count,
    outputTokens: count,
    reasoningTokens: count,
  }),
  groups: z.array(groupSchema),
  queue: z
    .string()
    .regex(/^[0-9a-f]{1,8}$/)
    .default(NO_QUEUE),
  /** What it has written: the same message makes it known and ends the batch. */
  files: z.array(fileSchema),
});

/** A batch with what only the fleet has to know. */
export interface SharedBatch extends Batch {
  readonly groups: readonly LineGroup[];
  /**
   * Where its lines wait. Each leader that checks the input begins a queue of its own, and first writes it down here, so that
   * nobody takes lines of one that has lost its lease meanwhile.
   */
  readonly queue: string;
  readonly files: readonly StoredFile[];
}

export function encodeFile(file: StoredFile): Uint8Array {
  return writeJson({ ...file, expiresAt: orNull(file.expiresAt) });
}

export function encodeBatch(batch: SharedBatch): Uint8Array {
  const files = batch.files.map((file) => ({ ...file, expiresAt: orNull(file.expiresAt) }));
  return writeJson({ ...batch, outputLifeMs: orNull(batch.outputLifeMs), files });
}

function orNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

const NONCE_DIGITS = 8;

/** An id of something that all machines share. */
export function newSharedId(kind: IdKind): string {
  return newId(kind).replace(/[-_](?=[0-9a-f]{32}$)/, "$&f");
}

/** Whether an id, which anyone may have sent, is that of something shared; the subjects of JetStream are made of no other. */
export function isSharedId(id: string): boolean {
  return SHARED.test(id);
}

/** A new id for a file that a batch writes: each attempt has one of its own. */
export function newOutputId(batch: string): string {
  return `file-f${SHARED.exec(batch)?.[1] ?? ""}${newNonce()}`;
}

/** Tells apart what several machines may make of the same batch. */
export function newNonce(): string {
  return crypto.randomUUID().replaceAll("-", "").slice(0, NONCE_DIGITS);
}

/** The ids that the batch of an output file may have; none for a file that was uploaded. */
export function batchesOf(file: string): readonly string[] {
  const [, digits, nonce] = SHARED.exec(file) ?? [];
  return digits === undefined || nonce === undefined ? [] : [`batch_f${digits}`, `msgbatch_f${digits}`];
}
