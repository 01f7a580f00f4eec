import { randomUUID } from "node:crypto";

/** What a frame is: the first are for the machine that is asked, the others for the one that asks. */
const KINDS = ["offer", "body", "alive", "cancel", "accepted", "part", "last"] as const;
export type FrameKind = (typeof KINDS)[number];

const ID_BYTES = 16;
/** Kind, call and number. */
const HEAD_BYTES = 1 + ID_BYTES + 4;
/** Larger messages are sent in parts, so that a short one need not wait long. */
const MOST_FRAME_BYTES = 128 * 1024;

/** One message on NATS: a piece of a call. */
export interface Frame {
  readonly kind: FrameKind;
  /** Of the call; 32 hexadecimal digits. */
  readonly call: string;
  /** Counts the frames of a call in this direction that may not be lost; of others, the last one. */
  readonly number: number;
  readonly payload: Uint8Array;
}

export function newCallId(): string {
  // Node keeps random bytes for these; asking for others takes twenty times as long.
  return randomUUID().replaceAll("-", "");
}

export function writeFrame({ kind, call, number, payload }: Frame): Uint8Array {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + payload.length);
  bytes[0] = KINDS.indexOf(kind);
  bytes.write(call, 1, "hex");
  bytes.writeUInt32BE(number, 1 + ID_BYTES);
  bytes.set(payload, HEAD_BYTES);
  return bytes;
}

/** Undefined for what is no frame. */
export function readFrame(data: Uint8Array): Frame | undefined {
  const kind = KINDS[data[0] ?? KINDS.length];
  if (kind === undefined || data.length < HEAD_BYTES) return undefined;
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return {
    kind,
    call: bytes.toString("hex", 1, 1 + ID_BYTES),
    number: bytes.readUInt32BE(1 + ID_BYTES),
    payload: data.subarray(HEAD_BYTES),
  };
}

/** Pieces of bytes that fit into frames; at least one, which may be empty. */
export function* inParts(bytes: Uint8Array, maxPayload: number): Generator<Uint8Array, void> {
  const size = Math.min(MOST_FRAME_BYTES, maxPayload) - HEAD_BYTES;
  let at = 0;
  do {
    yield bytes.subarray(at, at + size);
    at += size;
  } while (at < bytes.length);
}

/** How many bytes of an answer have been read, for the one who sends it. */
export function writeCount(count: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setFloat64(0, count);
  return bytes;
}

/** 0 for what is no such count. */
export function readCount(payload: Uint8Array): number {
  if (payload.length !== 8) return 0;
  const count = new DataView(payload.buffer, payload.byteOffset, 8).getFloat64(0);
  return Number.isFinite(count) ? count : 0;
}
