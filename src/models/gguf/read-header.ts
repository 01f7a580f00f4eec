import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { throwExhaustion } from "../../errors/exhausted-resource.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { ByteReader, EndOfDataError, InvalidGguf } from "./byte-reader.ts";
import { readMetadata, type Metadata } from "./read-metadata.ts";
import { readTensors, type TensorSums } from "./read-tensors.ts";

const MAGIC = "GGUF";
/** llama.cpp reads versions 2 and 3, little-endian. */
const VERSIONS: ReadonlySet<number> = new Set([2, 3]);
/** Magic, version, tensor count and key count. */
const FIXED_PART = 24;
/** The largest headers of published models are below 40 MB (a vocabulary of 260,000 with its merges). */
const MAX_HEADER_SIZE = 128 * 1024 * 1024;

export interface GgufHeader {
  readonly metadata: Metadata;
  readonly tensors: TensorSums;
  readonly fileSize: number;
}

/**
 * Reads the header of one GGUF file, and checks that the file is long enough for the tensors it promises. Format:
 * docs/gguf.md of ggml. Throws `invalid_model_file`, or `model_file_not_found`. Time and memory are bounded by
 * constants, whatever the file's numbers claim.
 */
export async function readGgufHeader(path: string): Promise<GgufHeader> {
  const file = await openRegularFile(path);
  try {
    const fileSize = (await file.stat()).size;
    return await parse(new ByteReader(file, Math.min(fileSize, MAX_HEADER_SIZE)), fileSize);
  } catch (error) {
    throwExhaustion(error);
    const why = error instanceof EndOfDataError ? "it is truncated or damaged" : invalidity(error);
    throw new ServiceError("invalid_model_file", `The model file ${path} cannot be used: ${why}.`, {
      cause: error,
    });
  } finally {
    await file.close();
  }
}

function invalidity(error: unknown): string {
  return error instanceof InvalidGguf ? error.message : "it cannot be read";
}

/** Opening a FIFO would wait for a writer, so the file is opened without waiting and looked at then. */
async function openRegularFile(path: string): Promise<FileHandle> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    throwExhaustion(error);
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    throw new ServiceError(
      missing ? "model_file_not_found" : "invalid_model_file",
      missing ? `There is no file ${path}.` : `${path} cannot be opened.`,
      { cause: error },
    );
  }
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new ServiceError("invalid_model_file", `${path} is not a regular file.`);
}

async function parse(reader: ByteReader, fileSize: number): Promise<GgufHeader> {
  await reader.need(FIXED_PART);
  if (reader.bytes(4).toString("latin1") !== MAGIC) throw new InvalidGguf("it does not begin with GGUF");
  const version = reader.u32();
  if (!VERSIONS.has(version)) throw new InvalidGguf(`its version ${version} is not supported`);
  const tensorCount = reader.u64();
  const keyCount = reader.u64();
  const metadata = await readMetadata(reader, keyCount);
  const tensors = await readTensors(reader, tensorCount, metadata, fileSize);
  return { metadata, tensors, fileSize };
}
