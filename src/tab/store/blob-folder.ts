import type { ErrorCode } from "../../errors/error-codes.ts";
import { ServiceError } from "../../errors/service-error.ts";

/**
 * Layout of the store in the origin private file system: `daybreak/blobs` has each file under its SHA-256, with the
 * suffix `.part` while it is incomplete. `daybreak/models` has a JSON file per model.
 */

async function openStore(): Promise<FileSystemDirectoryHandle> {
  if (typeof navigator.storage?.getDirectory !== "function") {
    throw new ServiceError(
      "unsupported_feature",
      "This browser cannot store models for a site: it has no origin private file system. A model can still be loaded from a file.",
    );
  }
  const root = await navigator.storage.getDirectory();
  return await root.getDirectoryHandle("daybreak", { create: true });
}

export async function openBlobs(): Promise<FileSystemDirectoryHandle> {
  return await (await openStore()).getDirectoryHandle("blobs", { create: true });
}

export async function openManifests(): Promise<FileSystemDirectoryHandle> {
  return await (await openStore()).getDirectoryHandle("models", { create: true });
}

/** Returns a file of a folder, or undefined if it does not exist. */
export async function findFile(folder: FileSystemDirectoryHandle, name: string): Promise<File | undefined> {
  try {
    return await (await folder.getFileHandle(name)).getFile();
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotFoundError") return undefined;
    throw error;
  }
}

export async function removeIfExists(folder: FileSystemDirectoryHandle, name: string): Promise<void> {
  try {
    await folder.removeEntry(name);
  } catch (error) {
    // The file does not exist, or another tab is writing it.
    if (!(error instanceof DOMException)) throw error;
  }
}

export function isQuotaExceeded(error: unknown): boolean {
  return error instanceof DOMException && error.name === "QuotaExceededError";
}

export function noSpaceError(cause: unknown): ServiceError {
  return new ServiceError(
    "insufficient_disk",
    "The browser has no more space for models. Delete a model from it, or free space on the disk.",
    { cause },
  );
}

/** Task of a worker of the store. */
export type BlobTask =
  | {
      readonly type: "download";
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly sha256: string;
      /** Size in bytes. */
      readonly size: number;
      /** File name for error messages. */
      readonly name: string;
    }
  | {
      readonly type: "copy";
      readonly blob: Blob;
      /** Name of the incomplete file. */
      readonly id: string;
    };

export type BlobMessage =
  /** Reports the stored bytes of the file. */
  | { readonly type: "progress"; readonly bytes: number }
  | { readonly type: "done"; readonly sha256: string }
  | { readonly type: "failed"; readonly code: ErrorCode; readonly message: string };
