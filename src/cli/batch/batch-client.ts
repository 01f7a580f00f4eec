import path from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { z } from "zod";
import { tryJson } from "../../json/json-values.ts";
import { CliError, EXIT } from "../cli-error.ts";
import { ApiError, type DaemonClient } from "../client/daemon-client.ts";
import { type BatchFile, uploadForm } from "./batch-files.ts";
import { batchListSchema, batchSchema, fileListSchema, fileSchema } from "../../api/wire/openai-batches.ts";

export type BatchObject = z.input<typeof batchSchema>;

/** Metadata field with the SHA-256 of the content. */
const DIGEST_KEY = "daybreak_sha256";
/** Metadata field with the name of the file, for lists. */
export const FILE_NAME_KEY = "daybreak_file";
/** Longest metadata value that the API accepts. */
const MAX_METADATA_LENGTH = 512;
const BATCHES_PER_PAGE = 100;
const FILES_PER_PAGE = 1000;
/** Batches with these statuses are not resumed. */
const UNUSABLE_STATUSES: ReadonlySet<BatchObject["status"]> = new Set([
  "failed",
  "cancelling",
  "cancelled",
  "expired",
]);

/** Client of the daemon's routes for batches and their files. */
export class BatchClient {
  readonly #client: DaemonClient;

  constructor(client: DaemonClient) {
    this.#client = client;
  }

  get(id: string): Promise<BatchObject> {
    return this.#client.json(batchSchema, "GET", batchPath(id));
  }

  cancel(id: string): Promise<BatchObject> {
    return this.#client.json(batchSchema, "POST", `${batchPath(id)}/cancel`);
  }

  /** Lists all batches, the newest first. */
  list(): AsyncGenerator<BatchObject, void, undefined> {
    return this.#pages(batchListSchema, `/v1/batches?limit=${BATCHES_PER_PAGE}`);
  }

  async *#pages<Item>(
    schema: z.ZodType<unknown, { data: Item[]; has_more: boolean; last_id: string | null }>,
    route: string,
  ): AsyncGenerator<Item, void, undefined> {
    for (let after = ""; ;) {
      const query = after && `&after=${encodeURIComponent(after)}`;
      const page = await this.#client.json(schema, "GET", route + query);
      yield* page.data;
      if (!page.has_more || page.last_id === null) return;
      after = page.last_id;
    }
  }

  /**
   * Finds the newest batch of this content that has not failed, expired or been cancelled. "newer" is a newer batch of
   * the same content that has.
   */
  async find({
    sha256,
    endpoint,
  }: BatchFile): Promise<{ readonly batch?: BatchObject; readonly newer?: BatchObject }> {
    let newer: BatchObject | undefined;
    for await (const batch of this.list()) {
      if (batch.endpoint !== endpoint || batch.metadata?.[DIGEST_KEY] !== sha256) continue;
      if (!UNUSABLE_STATUSES.has(batch.status)) return { batch, ...(newer && { newer }) };
      newer ??= batch;
    }
    return newer ? { newer } : {};
  }

  async create({ path: file, sha256, endpoint }: BatchFile): Promise<BatchObject> {
    const { id } = await this.#client.upload(fileSchema, "/v1/files", await uploadForm(file));
    return await this.#client.json(batchSchema, "POST", "/v1/batches", {
      input_file_id: id,
      endpoint,
      completion_window: "24h",
      metadata: { [DIGEST_KEY]: sha256, [FILE_NAME_KEY]: path.basename(file).slice(-MAX_METADATA_LENGTH) },
    });
  }

  /**
   * Streams the output file, then the error file.
   * @throws CliError also if they have been deleted
   */
  async *output(batch: BatchObject): AsyncGenerator<Uint8Array> {
    const { id, output_file_id: output, error_file_id: errors } = batch;
    try {
      for (const file of [output, errors])
        if (file !== null) yield* this.#client.bytes(`/v1/files/${file}/content`);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new CliError(
        EXIT.notFound,
        "file_not_found",
        `The output of ${id} has been deleted; daybreak batch <file> --new has the file answered again, by a new batch.`,
        error,
      );
    }
  }

  /** Most common error code of failed requests; undefined if there is none, or the error file has been deleted. */
  async mostCommonError({
    error_file_id: id,
  }: BatchObject): Promise<{ readonly code: string; readonly count: number } | undefined> {
    if (id === null) return undefined;
    try {
      return await mostCommonCode(this.#client.bytes(`/v1/files/${id}/content`));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Name of an uploaded file; undefined if it has been deleted. */
  async fileName(id: string): Promise<string | undefined> {
    try {
      return (await this.#client.json(fileSchema, "GET", `/v1/files/${encodeURIComponent(id)}`)).filename;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async fileNames(): Promise<ReadonlyMap<string, string>> {
    const names = new Map<string, string>();
    const files = this.#pages(fileListSchema, `/v1/files?purpose=batch&limit=${FILES_PER_PAGE}`);
    for await (const { id, filename } of files) names.set(id, filename);
    return names;
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

function batchPath(id: string): string {
  return `/v1/batches/${encodeURIComponent(id)}`;
}

const errorSchema = z.looseObject({ code: z.string() });
const errorLineSchema = z.looseObject({
  error: errorSchema.nullish().catch(undefined),
  response: z
    .looseObject({ body: z.looseObject({ error: errorSchema.nullish() }) })
    .nullish()
    .catch(undefined),
});

/** Most common error code in the lines of an error file, with its count. */
async function mostCommonCode(
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ readonly code: string; readonly count: number } | undefined> {
  const counts = new Map<string, number>();
  const lines = createInterface({ input: Readable.from(chunks), crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of lines) {
    const { data } = errorLineSchema.safeParse(tryJson(line));
    const code = (data?.error ?? data?.response?.body.error)?.code;
    if (code !== undefined) counts.set(code, (counts.get(code) ?? 0) + 1);
  }
  const [mostCommon] = [...counts].toSorted(([, a], [, b]) => b - a);
  return mostCommon && { code: mostCommon[0], count: mostCommon[1] };
}
