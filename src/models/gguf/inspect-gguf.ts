import { stat } from "node:fs/promises";
import { throwExhaustion } from "../../errors/exhausted-resource.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { GgufSummary } from "../model.ts";
import { InvalidGguf } from "./byte-reader.ts";
import { readGgufHeader, type GgufHeader } from "./read-header.ts";
import { summarizeHeaders } from "./summarize-headers.ts";

/** Reads what a model's files say of it; given all its shards in order. */
export type InspectGguf = (files: readonly string[]) => Promise<GgufSummary>;

/**
 * Makes an inspector that remembers its answers for as long as the size and the time of the files stay the same.
 * The inspector throws `invalid_model_file` or `model_file_not_found`.
 */
export function createGgufInspector(readHeader = readGgufHeader): InspectGguf {
  const known = new Map<string, { readonly state: string; readonly summary: Promise<GgufSummary> }>();
  return async (files) => {
    const key = files.join("\0");
    const state = await fileState(files);
    const before = known.get(key);
    if (before?.state === state) return await before.summary;
    const summary = inspect(files, readHeader);
    known.set(key, { state, summary });
    // A file that could not be read just now says nothing of itself.
    summary.catch((error: unknown) => {
      if (!(error instanceof ServiceError)) known.delete(key);
    });
    return await summary;
  };
}

async function fileState(files: readonly string[]): Promise<string> {
  const stats = await Promise.all(files.map(async (file) => await statModelFile(file)));
  return stats.map(({ size, mtimeMs }) => `${size}:${mtimeMs}`).join();
}

async function statModelFile(file: string): Promise<{ size: number; mtimeMs: number }> {
  try {
    return await stat(file);
  } catch (error) {
    throwExhaustion(error);
    throw new ServiceError("model_file_not_found", `There is no model file ${file}.`, { cause: error });
  }
}

async function inspect(
  files: readonly string[],
  readHeader: (file: string) => Promise<GgufHeader>,
): Promise<GgufSummary> {
  const headers: GgufHeader[] = [];
  for (const file of files) headers.push(await readHeader(file));
  const [first, ...others] = headers;
  if (!first) throw new ServiceError("model_file_not_found", "The model has no files.");
  try {
    return summarizeHeaders([first, ...others]);
  } catch (error) {
    if (!(error instanceof InvalidGguf)) throw error;
    throw new ServiceError(
      "invalid_model_file",
      `The model file ${files[0]} cannot be used: ${error.message}.`,
      {
        cause: error,
      },
    );
  }
}
