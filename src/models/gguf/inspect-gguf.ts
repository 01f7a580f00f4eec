import { constants } from "node:fs";
import { open, stat, type FileHandle } from "node:fs/promises";
import { isSystemError, ServiceError, rethrowExhaustion } from "../../errors/service-error.ts";
import type { GgufSummary } from "../model.ts";
import { type ByteSource, InvalidGguf } from "./byte-reader.ts";
import { type GgufHeader, type HeaderListener, readHeader } from "./read-tensors.ts";
import { summarizeHeaders } from "./summarize-headers.ts";

/** Summarizes the headers of a model's files, all shards in order. */
export type InspectGguf = (files: readonly string[]) => Promise<GgufSummary>;

/** Creates an inspector that remembers its results. It throws `invalid_model_file` or `model_file_not_found`. */
export function createGgufInspector(): InspectGguf {
  // Errors of reading may be temporary.
  return rememberByFiles(inspect, (error) => error instanceof ServiceError);
}

/**
 * Returns a function that remembers its results until the size or time of the files changes.
 * @param isLasting true for an error that is remembered, too
 */
export function rememberByFiles<Result>(
  compute: (files: readonly string[]) => Promise<Result>,
  isLasting: (error: unknown) => boolean,
): (files: readonly string[]) => Promise<Result> {
  const remembered = new Map<string, { readonly state: string; readonly result: Promise<Result> }>();
  return async (files) => {
    const key = files.join("\0");
    const state = await fileState(files);
    const before = remembered.get(key);
    if (before?.state === state) return await before.result;
    const result = compute(files);
    remembered.set(key, { state, result });
    result.catch((error: unknown) => {
      if (!isLasting(error)) remembered.delete(key);
    });
    return await result;
  };
}

async function fileState(files: readonly string[]): Promise<string> {
  const states = files.map(async (file) => {
    const { size, mtimeMs } = await stat(file).catch((error: unknown) => {
      rethrowExhaustion(error);
      throw missing(file, error);
    });
    return `${size}:${mtimeMs}`;
  });
  return (await Promise.all(states)).join();
}

async function inspect(files: readonly string[]): Promise<GgufSummary> {
  const headers: GgufHeader[] = [];
  for (const file of files) headers.push(await readGgufHeader(file));
  const [first, ...others] = headers;
  if (!first) throw new ServiceError("model_file_not_found", "The model has no files.");
  try {
    return summarizeHeaders([first, ...others]);
  } catch (error) {
    throw error instanceof InvalidGguf ? unusable(files[0], error) : error;
  }
}

/** Reads the header of one GGUF file. Throws `invalid_model_file`, or `model_file_not_found`. */
export async function readGgufHeader(path: string, listener?: HeaderListener): Promise<GgufHeader> {
  await using file = await openRegularFile(path);
  try {
    return await readHeader(sourceOf(file), (await file.stat()).size, listener);
  } catch (error) {
    rethrowExhaustion(error);
    throw unusable(path, error);
  }
}

function sourceOf(file: FileHandle): ByteSource {
  return {
    read: async (target, position) => (await file.read(target, 0, target.length, position)).bytesRead,
  };
}

/** Creates the error for an unusable file. */
export function unusable(file: string | undefined, cause: unknown): ServiceError {
  const reason = cause instanceof InvalidGguf ? cause.message : "it cannot be read";
  return new ServiceError("invalid_model_file", `The model file ${file} cannot be used: ${reason}.`, {
    cause,
  });
}

function missing(file: string, cause: unknown): ServiceError {
  return new ServiceError("model_file_not_found", `The model file ${file} does not exist.`, { cause });
}

/** Opens a file without blocking, because opening a FIFO would wait for a writer, and checks that it is regular. */
async function openRegularFile(path: string): Promise<FileHandle> {
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
  const file = await open(path, flags).catch((error: unknown) => {
    rethrowExhaustion(error);
    if (isSystemError(error) && error.code === "ENOENT") throw missing(path, error);
    throw new ServiceError("invalid_model_file", `${path} cannot be opened.`, { cause: error });
  });
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new ServiceError("invalid_model_file", `${path} is not a regular file.`);
}
