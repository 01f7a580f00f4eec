import type { z } from "zod";
import { batchListSchema, batchSchema } from "../../dialects/openai/batches/batch-object.ts";
import { fileSchema } from "../../dialects/openai/batches/file-object.ts";
import type { DaemonClient } from "../client/daemon-client.ts";
import { type BatchFile, uploadForm } from "./batch-file.ts";

export type BatchObject = z.input<typeof batchSchema>;

/** Where the content's digest is kept with a batch. */
const DIGEST = "daybreak_sha256";
/** The name of the file, for lists. */
export const FILE_NAME = "daybreak_file";
/** Longest value that the API keeps. */
const MAX_VALUE = 512;
const PAGE = 100;
/** A batch like this is not gone on with. */
const USELESS: ReadonlySet<BatchObject["status"]> = new Set(["failed", "cancelling", "cancelled", "expired"]);

/** Batches over the daemon's routes. */
export class BatchClient {
  readonly #client: DaemonClient;

  constructor(client: DaemonClient) {
    this.#client = client;
  }

  get(id: string): Promise<BatchObject> {
    return this.#client.json(batchSchema, "GET", pathOf(id));
  }

  cancel(id: string): Promise<BatchObject> {
    return this.#client.json(batchSchema, "POST", `${pathOf(id)}/cancel`);
  }

  /** All of them, the newest first. */
  async *all(): AsyncGenerator<BatchObject, void, undefined> {
    for (let after = ""; ;) {
      const query = `limit=${PAGE}${after && `&after=${encodeURIComponent(after)}`}`;
      const page = await this.#client.json(batchListSchema, "GET", `/v1/batches?${query}`);
      yield* page.data;
      if (!page.has_more || page.last_id === null) return;
      after = page.last_id;
    }
  }

  /**
   * The newest batch that was made of this content, and has not failed, been cancelled or expired; and the newest of all, if
   * that is another one.
   */
  async find({
    sha256,
    endpoint,
  }: BatchFile): Promise<{ readonly batch?: BatchObject; readonly newer?: BatchObject }> {
    let newer: BatchObject | undefined;
    for await (const batch of this.all()) {
      if (batch.endpoint !== endpoint || batch.metadata?.[DIGEST] !== sha256) continue;
      if (!USELESS.has(batch.status)) return { batch, ...(newer && { newer }) };
      newer ??= batch;
    }
    return newer ? { newer } : {};
  }

  /** Uploads a file and makes a batch of it. */
  async create({ path, sha256, endpoint }: BatchFile): Promise<BatchObject> {
    const file = await this.#client.upload(fileSchema, "/v1/files", await uploadForm(path));
    return await this.#client.json(batchSchema, "POST", "/v1/batches", {
      input_file_id: file.id,
      endpoint,
      completion_window: "24h",
      metadata: { [DIGEST]: sha256, [FILE_NAME]: path.slice(-MAX_VALUE) },
    });
  }

  /** The lines of its output, and then those of requests that did not succeed. */
  async *output({ output_file_id: output, error_file_id: errors }: BatchObject): AsyncGenerator<Uint8Array> {
    for (const id of [output, errors]) if (id !== null) yield* this.#client.bytes(`/v1/files/${id}/content`);
  }
}

function pathOf(id: string): string {
  return `/v1/batches/${encodeURIComponent(id)}`;
}
