import { ServiceError } from "../../errors/service-error.ts";
import { toError } from "../../errors/to-error.ts";
import type { EngineFiles } from "../core/platform.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";
import { FileBlob } from "./file-blob.ts";

/**
 * Opens the files of a model.
 * @param onProgress called with the share of all bytes that has been read, 0..1
 * @throws ServiceError model_load_failed when a file cannot be opened
 */
export function openEngineFiles(spec: EngineSpec, onProgress: (progress: number) => void): EngineFiles {
  let total = 0;
  let read = 0;
  const open = (path: string): FileBlob => {
    const blob = openFile(path, (bytes) => {
      read += bytes;
      // The header is read more than once, so the sum can pass the size.
      onProgress(Math.min(1, read / total));
    });
    total += blob.size;
    return blob;
  };
  return {
    model: spec.modelFiles.map(open),
    projector: spec.projectorFile === undefined ? undefined : open(spec.projectorFile),
    draft: spec.draft && open(spec.draft.path),
    adapters: spec.adapters.map(({ path, scale }) => ({ blob: open(path), scale })),
  };
}

function openFile(path: string, onRead: (bytes: number) => void): FileBlob {
  try {
    return FileBlob.open(path, onRead);
  } catch (error) {
    throw new ServiceError("model_load_failed", `Cannot open ${path}: ${toError(error).message}`, {
      cause: error,
    });
  }
}
