import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import type { SlotState } from "../../engine/engine-slots.ts";
import { STATE_CHUNK_BYTES } from "../../engine/protocol/calls.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { tryJson } from "../../json/json-values.ts";
import { headerSchema, type SavedHeader } from "./saved-header.ts";

/**
 * A file with the state of a slot:
 *
 *   8 bytes  {@link MAGIC}
 *   4 bytes  length of the header, little-endian
 *   header   JSON
 *   tokens   4 bytes each, little-endian
 *   state    in llama.cpp's format
 *   32 bytes SHA-256 of the preceding bytes
 */
const MAGIC = Buffer.from("DAYSLOT1");
const PREFIX_BYTES = MAGIC.length + 4;
const HASH_BYTES = 32;
/** Maximum bytes of a header; actual ones have a few hundred. */
const MAX_HEADER_BYTES = 16 * 1024;

/** Returns the size of a file with such a header. */
export function savedFileBytes(header: SavedHeader): number {
  return PREFIX_BYTES + encodeHeader(header).length + header.tokens * 4 + header.bytes + HASH_BYTES;
}

/** Writes a new file, and fails if it exists. */
export async function writeSavedFile(
  file: string,
  header: SavedHeader,
  { tokens, chunks }: SlotState,
): Promise<void> {
  await using handle = await open(file, "wx", 0o600);
  const hash = createHash("sha256");
  const write = async (bytes: Uint8Array): Promise<void> => {
    hash.update(bytes);
    await handle.writeFile(bytes);
  };
  const json = encodeHeader(header);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(json.length);
  await write(Buffer.concat([MAGIC, length, json, encodeTokens(tokens)]));
  for await (const chunk of chunks) await write(chunk);
  await handle.writeFile(hash.digest());
  await handle.sync();
}

/**
 * Reads the header of a file.
 * @throws ServiceError slot_state_mismatch if it has another format or is damaged
 */
export async function readSavedHeader(file: string): Promise<SavedHeader> {
  await using handle = await open(file);
  return (await headerOf(handle)).header;
}

/** Reads a file. Its chunks end with the error slot_state_mismatch if the file is damaged. */
export async function readSavedFile(handle: FileHandle): Promise<SlotState> {
  const { header, prefix } = await headerOf(handle);
  const hash = createHash("sha256").update(prefix);
  const tokenBytes = await readAt(handle, prefix.length, header.tokens * 4);
  hash.update(tokenBytes);
  return {
    tokens: Int32Array.from({ length: header.tokens }, (_, at) => tokenBytes.readInt32LE(at * 4)),
    scales: header.scales ?? [],
    bytes: header.bytes,
    chunks: readChunks(handle, prefix.length + tokenBytes.length, header.bytes, hash),
  };
}

async function* readChunks(
  handle: FileHandle,
  start: number,
  bytes: number,
  hash: ReturnType<typeof createHash>,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  for (let offset = 0; offset < bytes; offset += STATE_CHUNK_BYTES) {
    const chunk = await readAt(handle, start + offset, Math.min(STATE_CHUNK_BYTES, bytes - offset));
    hash.update(chunk);
    yield chunk;
  }
  const expected = await readAt(handle, start + bytes, HASH_BYTES);
  if (!expected.equals(hash.digest())) throw damaged();
}

async function headerOf(handle: FileHandle): Promise<{ header: SavedHeader; prefix: Buffer }> {
  const start = await readAt(handle, 0, PREFIX_BYTES);
  const length = start.readUInt32LE(MAGIC.length);
  if (!start.subarray(0, MAGIC.length).equals(MAGIC) || length > MAX_HEADER_BYTES) throw damaged();
  const json = await readAt(handle, PREFIX_BYTES, length);
  const parsed = headerSchema.safeParse(tryJson(json.toString()));
  if (!parsed.success) throw damaged();
  const { tokens, bytes } = parsed.data;
  const { size } = await handle.stat();
  if (size !== PREFIX_BYTES + length + tokens * 4 + bytes + HASH_BYTES) throw damaged();
  return { header: parsed.data, prefix: Buffer.concat([start, json]) };
}

async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer<ArrayBuffer>> {
  const buffer = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await handle.read(buffer, done, length - done, position + done);
    if (bytesRead === 0) throw damaged();
    done += bytesRead;
  }
  return buffer;
}

function encodeHeader(header: SavedHeader): Buffer {
  return Buffer.from(JSON.stringify(header));
}

function encodeTokens(tokens: Int32Array): Buffer {
  const bytes = Buffer.alloc(tokens.length * 4);
  tokens.forEach((token, at) => bytes.writeInt32LE(token, at * 4));
  return bytes;
}

function damaged(): ServiceError {
  return new ServiceError(
    "slot_state_mismatch",
    "The saved prompt's file is damaged; delete it and save again.",
  );
}
