import type { IdKind } from "../../batches/new-id.ts";
import { newId } from "../../batches/new-id.ts";

/** Ids of the fleet have an f that no machine's own have; a file that a batch has written carries the batch's digits. */
const SHARED = /^(?:file-|batch_|msgbatch_)f([0-9a-f]{32})([0-9a-f]{8})?$/;
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
