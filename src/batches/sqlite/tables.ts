import type { SQLInputValue } from "node:sqlite";
import { ServiceError } from "../../errors/service-error.ts";
import type { BatchChange, Page, PageQuery } from "../batch-store.ts";
import {
  type AnsweredLine,
  type Batch,
  type BatchStatus,
  type BatchUsage,
  type FilePurpose,
  type LineOutcome,
  type RouteAnswer,
  type StoredFile,
  UNFINISHED_STATUSES,
  type Viewer,
  type PendingLine,
} from "../batch.ts";
import type { Database, Row } from "./database.ts";
import { detailsOf, finiteOrNull, toAnswer, toBatch, toFile, toLine } from "./rows.ts";

const UNFINISHED_LIST = UNFINISHED_STATUSES.map((status) => `'${status}'`).join(", ");

/** Table of batches. */
export class BatchesTable {
  readonly #database: Database;
  readonly #now: () => number;

  constructor(database: Database, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  add(batch: Batch): void {
    const { id, owner, api, status, createdAt } = batch;
    this.#database.run(
      "INSERT INTO batches (id, owner, api, status, created, details) VALUES (?, ?, ?, ?, ?, ?)",
      id,
      owner,
      api,
      status,
      createdAt,
      detailsOf(batch),
    );
  }

  get(id: string, viewer: Viewer): Batch | undefined {
    const sql = "SELECT * FROM batches WHERE id = ?1 AND (?2 IS NULL OR owner = ?2)";
    const row = this.#database.get(sql, id, viewer ?? null);
    return row && toBatch(row);
  }

  /** Returns the number of a batch in the other tables; undefined if there is no such batch. */
  seq(id: string): number | undefined {
    const row = this.#database.get("SELECT seq FROM batches WHERE id = ?", id);
    return row && Number(row["seq"]);
  }

  page(query: PageQuery & { readonly api: string }): Page<Batch> {
    const condition = { sql: "api = ?4", values: [query.api] };
    return selectPage(this.#database, "batches", query, condition, toBatch);
  }

  unfinished(): readonly Batch[] {
    return this.#all(`SELECT * FROM batches WHERE status IN (${UNFINISHED_LIST}) ORDER BY seq`);
  }

  endedBefore(time: number): readonly string[] {
    const sql = `SELECT id FROM batches WHERE status NOT IN (${UNFINISHED_LIST}) AND created < ?`;
    return this.#database.all(sql, time).map(({ id }) => String(id));
  }

  /** Must be called within a transaction. */
  change(id: string, from: readonly BatchStatus[] | undefined, change: BatchChange): Batch | undefined {
    const before = this.get(id, undefined);
    if (!before || (from && !from.includes(before.status))) return undefined;
    const { status = before.status } = change;
    const times =
      before.times[status] === undefined ? { ...before.times, [status]: this.#now() } : before.times;
    const batch: Batch = { ...before, ...change, times };
    this.#database.run(
      "UPDATE batches SET status = ?, total = ?, details = ? WHERE id = ?",
      batch.status,
      batch.total,
      detailsOf(batch),
      id,
    );
    return batch;
  }

  addCounts(seq: number, outcome: LineOutcome, lines: number, bytes: number, usage?: BatchUsage): void {
    const { inputTokens = 0, cachedTokens = 0, outputTokens = 0, reasoningTokens = 0 } = usage ?? {};
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

  /** Resets the bytes of a batch's answers, once they are in its output files. */
  clearAnswerBytes(seq: number): void {
    this.#database.run("UPDATE batches SET answer_bytes = 0 WHERE seq = ?", seq);
  }

  answerBytes(): number {
    const sql = "SELECT coalesce(sum(answer_bytes), 0) AS sum FROM batches";
    return Number(this.#database.get(sql)?.["sum"]);
  }

  remove(id: string): void {
    this.#database.run("DELETE FROM batches WHERE id = ?", id);
  }

  #all(sql: string): readonly Batch[] {
    return this.#database.all(sql).map((row: Row) => toBatch(row));
  }
}

/** Table of files. */
export class FilesTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  add({ id, owner, purpose, name, bytes, createdAt, expiresAt }: StoredFile): void {
    this.#database.run(
      "INSERT INTO files (id, owner, purpose, name, bytes, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?)",
      id,
      owner,
      purpose,
      name,
      bytes,
      createdAt,
      finiteOrNull(expiresAt),
    );
  }

  get(id: string, viewer: Viewer): StoredFile | undefined {
    const sql = "SELECT * FROM files WHERE id = ?1 AND (?2 IS NULL OR owner = ?2)";
    const row = this.#database.get(sql, id, viewer ?? null);
    return row && toFile(row);
  }

  page(query: PageQuery & { readonly purposes: readonly FilePurpose[] }): Page<StoredFile> {
    const names = query.purposes.map((_, at) => `?${at + 4}`).join(", ");
    const condition = { sql: `purpose IN (${names})`, values: query.purposes };
    return selectPage(this.#database, "files", query, condition, toFile);
  }

  remove(id: string): void {
    this.#database.run("DELETE FROM files WHERE id = ?", id);
  }

  ids(): readonly string[] {
    return this.#database.all("SELECT id FROM files").map(({ id }) => String(id));
  }

  expiredBy(time: number): readonly string[] {
    return this.#database.all("SELECT id FROM files WHERE expires <= ?", time).map(({ id }) => String(id));
  }

  bytes(): number {
    return Number(this.#database.get("SELECT coalesce(sum(bytes), 0) AS sum FROM files")?.["sum"]);
  }
}

const BEFORE_FIRST_LINE = { model: "", sortKey: "", number: -1 };

/** Tables of lines and answers, by the number of their batch. */
export class LinesTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Returns false if the batch has a line with this custom id. */
  add(seq: number, { number, customId, model, sortKey, start, length }: PendingLine): boolean {
    const sql = `INSERT INTO lines (batch, number, custom_id, model, place, start, length) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (batch, custom_id) DO NOTHING`;
    return this.#database.run(sql, seq, number, customId, model, sortKey, start, length) > 0;
  }

  deleteBatch(seq: number): void {
    this.#database.run("DELETE FROM lines WHERE batch = ?", seq);
    this.#database.run("DELETE FROM answers WHERE batch = ?", seq);
  }

  pending(seq: number, after: PendingLine | undefined, limit: number): readonly PendingLine[] {
    const { model, sortKey, number } = after ?? BEFORE_FIRST_LINE;
    const sql = `SELECT * FROM lines WHERE batch = ? AND outcome IS NULL AND (model, place, number) > (?, ?, ?)
      ORDER BY model, place, number LIMIT ?`;
    return this.#database.all(sql, seq, model, sortKey, number, limit).map(toLine);
  }

  /** Returns false if the line has an outcome already. */
  setOutcome(seq: number, number: number, outcome: LineOutcome): boolean {
    const sql = "UPDATE lines SET outcome = ? WHERE batch = ? AND number = ? AND outcome IS NULL";
    return this.#database.run(sql, outcome, seq, number) > 0;
  }

  addAnswer(seq: number, number: number, { status, requestId, body }: RouteAnswer): void {
    const sql = "INSERT INTO answers (batch, number, status, request_id, body) VALUES (?, ?, ?, ?, ?)";
    this.#database.run(sql, seq, number, status, requestId, body);
  }

  /** Sets the outcome of all lines that have none; returns their number. */
  setRemainingOutcomes(seq: number, outcome: LineOutcome): number {
    return this.#database.run(
      "UPDATE lines SET outcome = ? WHERE batch = ? AND outcome IS NULL",
      outcome,
      seq,
    );
  }

  answers(seq: number, afterNumber: number, limit: number): readonly AnsweredLine[] {
    const sql = `SELECT lines.number, custom_id, outcome, status, request_id, body FROM lines
      LEFT JOIN answers ON answers.batch = lines.batch AND answers.number = lines.number
      WHERE lines.batch = ? AND lines.number > ? AND outcome IS NOT NULL ORDER BY lines.number LIMIT ?`;
    return this.#database.all(sql, seq, afterNumber, limit).map(toAnswer);
  }
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
