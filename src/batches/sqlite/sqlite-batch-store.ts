import type { SQLInputValue } from "node:sqlite";
import { ServiceError } from "../../errors/service-error.ts";
import type { BatchChange, BatchRecords, Page, PageQuery } from "../batch-store.ts";
import {
  type AnsweredLine,
  answeredLineSchema,
  type Batch,
  batchSchema,
  type BatchStatus,
  type BatchUsage,
  type FilePurpose,
  type LineOutcome,
  NO_USAGE,
  type PendingLine,
  pendingLineSchema,
  type RouteAnswer,
  type RunOutcome,
  type StoredFile,
  storedFileSchema,
  UNFINISHED_STATUSES,
  type Viewer,
} from "../batch.ts";
import { Database, type Row } from "./database.ts";

const UNFINISHED_LIST = UNFINISHED_STATUSES.map((status) => `'${status}'`).join(", ");
const BEFORE_FIRST_LINE = { model: "", sortKey: "", number: -1 };

/**
 * Store of one machine, which runs all lines itself, in an SQLite database. Its calls are synchronous, so they cannot
 * interleave.
 */
export class SqliteBatchStore implements BatchRecords {
  readonly #database: Database;
  readonly #now: () => number;

  private constructor(database: Database, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /**
   * @param file path of the database, created if missing
   * @param now Unix milliseconds
   * @throws DamagedDatabase, or ServiceError
   */
  static async open(file: string, now: () => number = Date.now): Promise<SqliteBatchStore> {
    return new SqliteBatchStore(await Database.open(file), now);
  }

  async addFile(file: StoredFile): Promise<void> {
    this.#addFile(file);
  }

  #addFile({ id, owner, purpose, name, bytes, createdAt, expiresAt }: StoredFile): void {
    const sql =
      "INSERT INTO files (id, owner, purpose, name, bytes, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?)";
    const expires = Number.isFinite(expiresAt) ? expiresAt : null;
    this.#database.run(sql, id, owner, purpose, name, bytes, createdAt, expires);
  }

  async file(viewer: Viewer, id: string): Promise<StoredFile | undefined> {
    const sql = "SELECT * FROM files WHERE id = ?1 AND (?2 IS NULL OR owner = ?2)";
    const row = this.#database.get(sql, id, viewer ?? null);
    return row && toFile(row);
  }

  async files(query: PageQuery & { readonly purposes: readonly FilePurpose[] }): Promise<Page<StoredFile>> {
    const names = query.purposes.map((_, at) => `?${at + 4}`).join(", ");
    const condition = { sql: `purpose IN (${names})`, values: query.purposes };
    return selectPage(this.#database, "files", query, condition, toFile);
  }

  async removeFile(id: string): Promise<void> {
    this.#database.run("DELETE FROM files WHERE id = ?", id);
  }

  /** Returns the ids of all files. */
  async fileIds(): Promise<readonly string[]> {
    return this.#database.all("SELECT id FROM files").map(({ id }) => String(id));
  }

  async expiredFiles(time: number): Promise<readonly string[]> {
    return this.#database.all("SELECT id FROM files WHERE expires <= ?", time).map(({ id }) => String(id));
  }

  async storedBytes(): Promise<number> {
    const sql = `SELECT (SELECT coalesce(sum(bytes), 0) FROM files)
      + (SELECT coalesce(sum(answer_bytes), 0) FROM batches) AS sum`;
    return Number(this.#database.get(sql)?.["sum"]);
  }

  async addBatch(batch: Batch): Promise<void> {
    const { id, owner, api, status, createdAt } = batch;
    const sql = "INSERT INTO batches (id, owner, api, status, created, details) VALUES (?, ?, ?, ?, ?, ?)";
    this.#database.run(sql, id, owner, api, status, createdAt, detailsOf(batch));
  }

  async batch(viewer: Viewer, id: string): Promise<Batch | undefined> {
    return this.#batch(viewer, id);
  }

  #batch(viewer: Viewer, id: string): Batch | undefined {
    const sql = "SELECT * FROM batches WHERE id = ?1 AND (?2 IS NULL OR owner = ?2)";
    const row = this.#database.get(sql, id, viewer ?? null);
    return row && toBatch(row);
  }

  async batches(query: PageQuery & { readonly api: string }): Promise<Page<Batch>> {
    const condition = { sql: "api = ?4", values: [query.api] };
    return selectPage(this.#database, "batches", query, condition, toBatch);
  }

  async unfinished(): Promise<readonly Batch[]> {
    const sql = `SELECT * FROM batches WHERE status IN (${UNFINISHED_LIST}) ORDER BY seq`;
    return this.#database.all(sql).map(toBatch);
  }

  async endedBefore(time: number): Promise<readonly string[]> {
    const sql = `SELECT id FROM batches WHERE status NOT IN (${UNFINISHED_LIST}) AND created < ?`;
    return this.#database.all(sql, time).map(({ id }) => String(id));
  }

  async change(id: string, from: readonly BatchStatus[], change: BatchChange): Promise<Batch | undefined> {
    return this.#database.transaction(() => this.#change(id, from, change));
  }

  /** Must be called within a transaction. */
  #change(id: string, from: readonly BatchStatus[] | undefined, change: BatchChange): Batch | undefined {
    const before = this.#batch(undefined, id);
    if (!before || (from && !from.includes(before.status))) return undefined;
    const { status = before.status } = change;
    const batch: Batch = { ...before, ...change, times: { [status]: this.#now(), ...before.times } };
    const sql = "UPDATE batches SET status = ?, total = ?, details = ? WHERE id = ?";
    this.#database.run(sql, batch.status, batch.total, detailsOf(batch), id);
    return batch;
  }

  async finish(id: string, change: BatchChange, files: readonly StoredFile[]): Promise<Batch> {
    const batch = this.#database.transaction(() => {
      for (const file of files) this.#addFile(file);
      const seq = this.#seq(id);
      this.#deleteLines(seq);
      // The answers are in the output files now.
      this.#database.run("UPDATE batches SET answer_bytes = 0 WHERE seq = ?", seq);
      return this.#change(id, undefined, change);
    });
    this.#database.run("PRAGMA incremental_vacuum");
    return batch ?? throwNotFound(id);
  }

  async removeBatch(id: string): Promise<void> {
    this.#database.transaction(() => {
      const seq = this.#findSeq(id);
      if (seq === undefined) return;
      this.#deleteLines(seq);
      this.#database.run("DELETE FROM batches WHERE id = ?", id);
    });
  }

  /** Adds lines; skips and returns those whose custom id the batch has already. */
  async addLines(id: string, lines: readonly PendingLine[]): Promise<readonly PendingLine[]> {
    const sql = `INSERT INTO lines (batch, number, custom_id, model, place, start, length) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (batch, custom_id) DO NOTHING`;
    return this.#database.transaction(() => {
      const seq = this.#seq(id);
      return lines.filter(
        ({ number, customId, model, sortKey, start, length }) =>
          this.#database.run(sql, seq, number, customId, model, sortKey, start, length) === 0,
      );
    });
  }

  /** Deletes all lines of a batch. */
  async deleteLines(id: string): Promise<void> {
    this.#database.transaction(() => this.#deleteLines(this.#seq(id)));
  }

  #deleteLines(seq: number): void {
    this.#database.run("DELETE FROM lines WHERE batch = ?", seq);
    this.#database.run("DELETE FROM answers WHERE batch = ?", seq);
  }

  /** Returns the next lines without an answer, sorted by model and sort key. */
  async pendingLines(
    id: string,
    after: PendingLine | undefined,
    limit: number,
  ): Promise<readonly PendingLine[]> {
    const { model, sortKey, number } = after ?? BEFORE_FIRST_LINE;
    const sql = `SELECT number, custom_id AS customId, model, place AS sortKey, start, length FROM lines
      WHERE batch = ? AND outcome IS NULL AND (model, place, number) > (?, ?, ?)
      ORDER BY model, place, number LIMIT ?`;
    const rows = this.#database.all(sql, this.#seq(id), model, sortKey, number, limit);
    return rows.map((row) => pendingLineSchema.parse(row));
  }

  /** Saves the answer to a line; returns false and changes nothing if the line has one already. */
  async saveAnswer(
    id: string,
    number: number,
    outcome: RunOutcome,
    { status, requestId, body }: RouteAnswer,
    usage: BatchUsage,
  ): Promise<boolean> {
    return this.#database.transaction(() => {
      const seq = this.#seq(id);
      const update = "UPDATE lines SET outcome = ? WHERE batch = ? AND number = ? AND outcome IS NULL";
      if (this.#database.run(update, outcome, seq, number) === 0) return false;
      const insert = "INSERT INTO answers (batch, number, status, request_id, body) VALUES (?, ?, ?, ?, ?)";
      this.#database.run(insert, seq, number, status, requestId, body);
      this.#addCounts(seq, outcome, 1, body.length, usage);
      return true;
    });
  }

  /** Sets the outcome of all lines without an answer. */
  async answerRemaining(id: string, outcome: LineOutcome): Promise<void> {
    this.#database.transaction(() => {
      const seq = this.#seq(id);
      const sql = "UPDATE lines SET outcome = ? WHERE batch = ? AND outcome IS NULL";
      this.#addCounts(seq, outcome, this.#database.run(sql, outcome, seq), 0, NO_USAGE);
    });
  }

  #addCounts(seq: number, outcome: LineOutcome, lines: number, bytes: number, usage: BatchUsage): void {
    const { inputTokens, cachedTokens, outputTokens, reasoningTokens } = usage;
    this.#database.run(
      `UPDATE batches SET ${outcome} = ${outcome} + ?, answer_bytes = answer_bytes + ?, input_tokens = input_tokens + ?,
        cached_tokens = cached_tokens + ?, output_tokens = output_tokens + ?, reasoning_tokens = reasoning_tokens + ?
        WHERE seq = ?`,
      lines,
      bytes,
      inputTokens,
      cachedTokens,
      outputTokens,
      reasoningTokens,
      seq,
    );
  }

  /** Returns answered lines in the order of the input. */
  async answers(id: string, afterNumber: number, limit: number): Promise<readonly AnsweredLine[]> {
    const sql = `SELECT lines.number, custom_id AS customId, outcome, status, request_id AS requestId, body FROM lines
      LEFT JOIN answers ON answers.batch = lines.batch AND answers.number = lines.number
      WHERE lines.batch = ? AND lines.number > ? AND outcome IS NOT NULL ORDER BY lines.number LIMIT ?`;
    return this.#database
      .all(sql, this.#seq(id), afterNumber, limit)
      .map((row) => answeredLineSchema.parse({ ...row, answer: row["status"] === null ? undefined : row }));
  }

  close(): void {
    this.#database.close();
  }

  /** Returns the number of a batch in the other tables. */
  #seq(id: string): number {
    return this.#findSeq(id) ?? throwNotFound(id);
  }

  #findSeq(id: string): number | undefined {
    const row = this.#database.get("SELECT seq FROM batches WHERE id = ?", id);
    return row && Number(row["seq"]);
  }
}

function throwNotFound(id: string): never {
  throw new ServiceError("batch_not_found", `There is no batch with the id "${id}", or no longer.`);
}

/** Selects one page of the rows that a viewer sees and that fulfill a condition. */
function selectPage<Item>(
  database: Database,
  table: "files" | "batches",
  query: PageQuery,
  condition: { readonly sql: string; readonly values: readonly SQLInputValue[] },
  toItem: (row: Row) => Item,
): Page<Item> {
  const { viewer, limit, descending, after, before } = query;
  const cursor = after ?? before;
  const isBackward = after === undefined && before !== undefined;
  // Rows right before a cursor are selected in the opposite order.
  const goesDown = descending !== isBackward;
  const position = cursor === undefined ? undefined : seqOf(database, table, cursor, viewer, isBackward);
  const rows = database.all(
    `SELECT * FROM ${table} WHERE ${condition.sql} AND (?1 IS NULL OR owner = ?1)
      AND (?2 IS NULL OR ${goesDown ? "seq < ?2" : "seq > ?2"}) ORDER BY seq ${goesDown ? "DESC" : "ASC"} LIMIT ?3`,
    viewer ?? null,
    position ?? null,
    limit + 1,
    ...condition.values,
  );
  const items = rows.slice(0, limit).map(toItem);
  return { items: isBackward ? items.toReversed() : items, hasMore: rows.length > limit };
}

function seqOf(database: Database, table: string, id: string, viewer: Viewer, isBackward: boolean): number {
  const row = database.get(
    `SELECT seq FROM ${table} WHERE id = ?1 AND (?2 IS NULL OR owner = ?2)`,
    id,
    viewer ?? null,
  );
  if (row) return Number(row["seq"]);
  const param = isBackward ? "before" : "after";
  throw new ServiceError(
    "invalid_parameter",
    `${param}: nothing in the list has the id "${id.slice(0, 100)}".`,
    {
      param,
    },
  );
}

function toFile(row: Row): StoredFile {
  return storedFileSchema.parse({ ...row, createdAt: row["created"], expiresAt: row["expires"] });
}

function toBatch(row: Row): Batch {
  const details: object = JSON.parse(String(row["details"]));
  return batchSchema.parse({
    ...row,
    ...details,
    createdAt: row["created"],
    counts: row,
    usage: {
      inputTokens: row["input_tokens"],
      cachedTokens: row["cached_tokens"],
      outputTokens: row["output_tokens"],
      reasoningTokens: row["reasoning_tokens"],
    },
  });
}

/** Returns the JSON of the column `details`: the fields that no query searches. An infinite time becomes null. */
function detailsOf(batch: Batch): string {
  const { endpoint, inputFile, times, expiresAt, outputLifeMs, metadata, problems } = batch;
  const { outputFile, errorFile, endsAs } = batch;
  return JSON.stringify({
    endpoint,
    inputFile,
    times,
    expiresAt,
    outputLifeMs,
    metadata,
    problems,
    outputFile,
    errorFile,
    endsAs,
  });
}
