import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { OpenFile } from "../dialects/management/model-file-routes.ts";
import { throwExhaustion } from "../errors/exhausted-resource.ts";
import { ServiceError } from "../errors/service-error.ts";

/** Makes a function that opens files, and computes the SHA-256 of each once as long as it does not change. */
export function createFileOpener(): OpenFile {
  const known = new Map<string, Promise<string>>();
  return async (path) => {
    const { size, mtimeMs } = await stat(path).catch((cause: unknown) => {
      throwExhaustion(cause);
      throw new ServiceError("model_file_not_found", `The model file ${path} does not exist.`, { cause });
    });
    const key = `${path}:${size}:${mtimeMs}`;
    const digest = known.get(key) ?? sha256(path);
    known.set(key, digest);
    digest.catch(() => known.delete(key));
    return {
      size,
      etag: await digest,
      read: (start, end) =>
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node types its web streams differently
        Readable.toWeb(createReadStream(path, { start, end })) as ReadableStream<Uint8Array>,
    };
  };
}

async function sha256(path: string): Promise<string> {
  const sum = createHash("sha256");
  await pipeline(createReadStream(path), sum);
  return sum.digest("hex");
}
