import type { ErrorCode } from "../../errors/error-codes.ts";

/** What a worker of the store is to do. */
export type BlobTask =
  | {
      readonly type: "download";
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly sha256: string;
      /** In bytes. */
      readonly size: number;
      /** For messages. */
      readonly name: string;
    }
  | {
      readonly type: "copy";
      readonly blob: Blob;
      /** Names the file while it grows. */
      readonly id: string;
    };

export type BlobMessage =
  /** Bytes of the file that are stored. */
  | { readonly type: "progress"; readonly bytes: number }
  | { readonly type: "done"; readonly sha256: string }
  | { readonly type: "failed"; readonly code: ErrorCode; readonly message: string };
