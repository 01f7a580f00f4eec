import type { StoredFile } from "./fixture-hub-content.ts";

/** Small, so that small files have several. */
const CHUNK_BYTES = 1024;

const CHUNK_HEADER_BYTES = 8;

/**
 * A file as one block of the chunk storage: for each chunk a header (version 0, stored length in 3 bytes,
 * scheme 0 for "as it is", length in 3 bytes) and its bytes. https://huggingface.co/docs/xet/en/xorb
 */
export function xorbOf(file: StoredFile): Buffer {
  return Buffer.concat(
    chunksOf(file).flatMap((chunk) => {
      const header = Buffer.alloc(CHUNK_HEADER_BYTES);
      header.writeUIntLE(chunk.length, 1, 3);
      header.writeUIntLE(chunk.length, 5, 3);
      return [header, chunk];
    }),
  );
}

/**
 * How to put a range of the file together from chunks.
 * https://huggingface.co/docs/xet/en/download-protocol
 * @param from - first byte wanted
 */
export function reconstructionOf(file: StoredFile, from: number, xorbUrl: string): object {
  const first = Math.floor(from / CHUNK_BYTES);
  const last = Math.ceil(file.bytes.length / CHUNK_BYTES);
  const chunks = { start: first, end: last };
  const bytes = {
    start: first * (CHUNK_BYTES + CHUNK_HEADER_BYTES),
    end: xorbOf(file).length - 1,
  };
  return {
    terms: [{ hash: file.sha256, unpacked_length: file.bytes.length - first * CHUNK_BYTES, range: chunks }],
    xorbs: { [file.sha256]: [{ url: xorbUrl, ranges: [{ chunks, bytes }] }] },
    offset_into_first_range: from - first * CHUNK_BYTES,
  };
}

function chunksOf(file: StoredFile): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < file.bytes.length; at += CHUNK_BYTES)
    chunks.push(file.bytes.subarray(at, at + CHUNK_BYTES));
  return chunks;
}
