import fs from "node:fs/promises";
import { throwExhaustion } from "../errors/exhausted-resource.ts";
import { ServiceError } from "../errors/service-error.ts";
import { toError } from "../errors/to-error.ts";
import type { EngineSpec } from "./protocol/engine-spec.ts";

/** First bytes of every GGUF file. */
const GGUF_MAGIC = "GGUF";

/** Shortest possible GGUF: magic, version and two counts. */
const MIN_GGUF_BYTES = 24;

/** All files that an engine loads. */
export function filesOf(spec: EngineSpec): string[] {
  return [
    ...spec.modelFiles,
    ...(spec.projectorFile === undefined ? [] : [spec.projectorFile]),
    ...spec.adapters.map(({ path }) => path),
    ...(spec.draft ? [spec.draft.path] : []),
  ];
}

/**
 * Rejects a file that cannot be a model, before a process is started.
 * @throws ServiceError model_file_not_found, invalid_model_file or model_load_failed
 */
export async function checkModelFile(path: string): Promise<void> {
  const stat = await fs.stat(path).catch((error: unknown) => fail(path, error));
  // Opening a pipe would wait for a writer.
  if (!stat.isFile()) throw new ServiceError("invalid_model_file", `${path} is not a file.`);
  if (stat.size < MIN_GGUF_BYTES) {
    throw new ServiceError(
      "invalid_model_file",
      `${path} has ${stat.size} bytes, which is too small for a model.`,
    );
  }
  const file = await fs.open(path).catch((error: unknown) => fail(path, error));
  try {
    const { buffer } = await file.read(Buffer.alloc(GGUF_MAGIC.length), 0, GGUF_MAGIC.length, 0);
    if (buffer.toString("latin1") !== GGUF_MAGIC) {
      throw new ServiceError("invalid_model_file", `${path} is not a GGUF file.`);
    }
  } finally {
    await file.close();
  }
}

function fail(path: string, error: unknown): never {
  throwExhaustion(error);
  if (error instanceof Error && "code" in error && error.code === "ENOENT") {
    throw new ServiceError("model_file_not_found", `The file ${path} does not exist.`, { cause: error });
  }
  throw new ServiceError("model_load_failed", `Cannot read ${path}: ${toError(error).message}`, {
    cause: error,
  });
}
