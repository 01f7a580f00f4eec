import path from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { z } from "zod";
import {
  batchListSchema,
  batchSchema,
  fileListSchema,
  fileSchema,
} from "../../api/openai/batches/batch-objects.ts";
import { tryJson } from "../../json/json-values.ts";
import { CliError, EXIT } from "../cli-error.ts";
import { ApiError, type DaemonClient } from "../client/daemon-client.ts";
import { type BatchFile, uploadForm } from "./batch-files.ts";

export type BatchObject = z.input<typeof batchSchema>;

/** Where the content's digest is kept with a batch. */
const DIGEST = "daybreak_sha256";
/** The name of the file, for lists. */
export const FILE_NAME = "daybreak_file";
/** Longest value that the API keeps. */
const MAX_VALUE = 512;
const PAGE = 100;
const FILES_PAGE = 1000;
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
  async create({ path: file, sha256, endpoint }: BatchFile): Promise<BatchObject> {
    const { id } = await this.#client.upload(fileSchema, "/v1/files", await uploadForm(file));
    return await this.#client.json(batchSchema, "POST", "/v1/batches", {
      input_file_id: id,
      endpoint,
      completion_window: "24h",
      metadata: { [DIGEST]: sha256, [FILE_NAME]: path.basename(file).slice(-MAX_VALUE) },
    });
  }

  /**
   * The lines of its output, and then those of requests that did not succeed.
   * @throws CliError also when the output is no longer there
   */
  async *output(batch: BatchObject): AsyncGenerator<Uint8Array> {
    const { id, output_file_id: output, error_file_id: errors } = batch;
    try {
      for (const file of [output, errors])
        if (file !== null) yield* this.#client.bytes(`/v1/files/${file}/content`);
    } catch (error) {
      if (!isGone(error)) throw error;
      throw new CliError(
        EXIT.notFound,
        "file_not_found",
        `The output of ${id} has been deleted; daybreak batch <file> --new has the file answered again, by a new batch.`,
        error,
      );
    }
  }

  /** Why most of the requests that did not succeed did not; undefined if none tells, or its file is gone. */
  async commonestReason({
    error_file_id: id,
  }: BatchObject): Promise<{ readonly code: string; readonly count: number } | undefined> {
    if (id === null) return undefined;
    try {
      return await commonestCode(this.#client.bytes(`/v1/files/${id}/content`));
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  /** What a file was called when it was uploaded; undefined if it is gone. */
  async fileName(id: string): Promise<string | undefined> {
    try {
      return (await this.#client.json(fileSchema, "GET", `/v1/files/${encodeURIComponent(id)}`)).filename;
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  /** What all uploaded files were called, by their ids. */
  async fileNames(): Promise<ReadonlyMap<string, string>> {
    const names = new Map<string, string>();
    for (let after = ""; ;) {
      const query = `purpose=batch&limit=${FILES_PAGE}${after && `&after=${encodeURIComponent(after)}`}`;
      const page = await this.#client.json(fileListSchema, "GET", `/v1/files?${query}`);
      for (const { id, filename } of page.data) names.set(id, filename);
      if (!page.has_more || page.last_id === null) return names;
      after = page.last_id;
    }
  }
}

function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

function pathOf(id: string): string {
  return `/v1/batches/${encodeURIComponent(id)}`;
}

const errorSchema = z.looseObject({ code: z.string() });
const lineSchema = z.looseObject({
  error: errorSchema.nullish().catch(undefined),
  response: z
    .looseObject({ body: z.looseObject({ error: errorSchema.nullish() }) })
    .nullish()
    .catch(undefined),
});

/** The error code that most lines of a batch's error file have, and how many have it. */
async function commonestCode(
  pieces: AsyncIterable<Uint8Array>,
): Promise<{ readonly code: string; readonly count: number } | undefined> {
  const counts = new Map<string, number>();
  const lines = createInterface({ input: Readable.from(pieces), crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of lines) {
    const { data } = lineSchema.safeParse(tryJson(line));
    const code = (data?.error ?? data?.response?.body.error)?.code;
    if (code !== undefined) counts.set(code, (counts.get(code) ?? 0) + 1);
  }
  const [commonest] = [...counts].toSorted(([, a], [, b]) => b - a);
  return commonest && { code: commonest[0], count: commonest[1] };
}
