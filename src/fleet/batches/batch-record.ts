import { z } from "zod";
import { batchSchema, type IdKind, newId, storedFileSchema } from "../../batches/batch.ts";

/**
 * Files and batches in JetStream, which any NATS client may have written.
 */

/**
 * Ids of the fleet begin with an f, unlike those of one machine; the id of an output file contains that of its batch.
 */
const SHARED_ID = /^(?:file-|batch_|msgbatch_)f([0-9a-f]{32})([0-9a-f]{8})?$/;

/** Ids are parts of subjects, and must therefore contain no wildcards. */
const sharedId = z.string().refine(isSharedId);
const hash = z.string().regex(/^[0-9a-f]{64}$/);

export const fileSchema = storedFileSchema.extend({ id: sharedId });

/** Queue of a batch whose lines are not queued yet. */
export const NO_QUEUE = "0";

/** Lines of one model. */
const groupSchema = z.object({
  /** Model name in the lines; empty for the default model. */
  name: z.string(),
  /** Model that the name meant when the batch began; absent if no machine had it. */
  model: z.object({ files: hash, settings: hash, adapter: z.string().optional() }).optional(),
});
export type LineGroup = z.infer<typeof groupSchema>;

export const sharedBatchSchema = batchSchema.extend({
  id: sharedId,
  inputFile: sharedId,
  groups: z.array(groupSchema).readonly(),
  /**
   * Name of the queue of the batch's lines. Each leader that validates the input creates its own queue and records it
   * here first, so that no lines are taken from the queue of a leader that has lost its lease.
   */
  queue: z
    .string()
    .regex(/^[0-9a-f]{1,8}$/)
    .default(NO_QUEUE),
  /** Output files, written with the final status in one message. */
  files: z.array(fileSchema).readonly(),
});

/** Batch with the fields that only the fleet needs. */
export type SharedBatch = Readonly<z.output<typeof sharedBatchSchema>>;

const NONCE_DIGITS = 8;

/** Returns a new id of an item that all machines share. */
export function newSharedId(kind: IdKind): string {
  return newId(kind).replace(/[-_](?=[0-9a-f]{32}$)/, "$&f");
}

/** Returns true if an untrusted id is that of a shared item. Only such ids may become parts of subjects. */
export function isSharedId(id: string): boolean {
  return SHARED_ID.test(id);
}

/** Returns a new id for an output file of a batch, different for each attempt. */
export function newOutputId(batch: string): string {
  return `file-f${SHARED_ID.exec(batch)?.[1] ?? ""}${newNonce()}`;
}

/** Returns random digits that distinguish the items of several machines for the same batch. */
export function newNonce(): string {
  return crypto.randomUUID().replaceAll("-", "").slice(0, NONCE_DIGITS);
}

/** Returns the possible ids of the batch of an output file; none for an uploaded file. */
export function possibleBatchIds(file: string): readonly string[] {
  const [, digits, nonce] = SHARED_ID.exec(file) ?? [];
  return digits === undefined || nonce === undefined ? [] : [`batch_f${digits}`, `msgbatch_f${digits}`];
}
