import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Pixels } from "../core/to-bmp.ts";

type Decode = (file: ArrayBuffer) => Promise<Pixels>;

let decoder: Promise<Decode> | undefined;

/** Decodes a WebP image in WebAssembly, which is loaded with the first one. Rejects when the image is damaged. */
export async function decodeWebp(file: Uint8Array<ArrayBuffer>): Promise<Pixels> {
  decoder ??= loadDecoder();
  const decode = await decoder;
  return await decode(file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength));
}

async function loadDecoder(): Promise<Decode> {
  const wasm = fileURLToPath(import.meta.resolve("@jsquash/webp/codec/dec/webp_dec.wasm"));
  const { default: decode, init } = await import("@jsquash/webp/decode.js");
  // Otherwise it would fetch its WebAssembly, as in a page.
  await init(await WebAssembly.compile(await readFile(wasm)));
  return decode;
}
