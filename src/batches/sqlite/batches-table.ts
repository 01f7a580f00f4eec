import type { BatchChange, Page, PageQuery } from "../batch-store.ts";
import {
  type Batch,
  type BatchStatus,
  type BatchUsage,
  type LineOutcome,
  UNFINISHED,
  type Viewer,
} from "../batch.ts";
import type { Database, Row } from "./database.ts";
import { detailsOf, toBatch } from "./rows.ts";
import { selectPage } from "./select-page.ts";

const UNFINISHED_LIST = UNFINISHED.map((status) => `'${status}'`).join(", ");

/** The rows of batches. */
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

  /** The number of a batch in the other tables; undefined if there is none. */
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

  /** Call it within a transaction. */
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

  count(seq: number, outcome: LineOutcome, lines: number, bytes: number, usage?: BatchUsage): void {
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

  /** The answers of a batch are in its files now. */
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
