import type { AnsweredLine, LineOutcome, RouteAnswer, WaitingLine } from "../batch.ts";
import type { Database } from "./database.ts";
import { toAnswer, toLine } from "./rows.ts";

const NO_LINE = { model: "", order: "", number: -1 };

/** The rows of lines and their answers, by the number of their batch. */
export class LinesTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** False if the batch has a line with this custom id. */
  add(seq: number, { number, customId, model, order, start, length }: WaitingLine): boolean {
    const sql = `INSERT INTO lines (batch, number, custom_id, model, place, start, length) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (batch, custom_id) DO NOTHING`;
    return this.#database.run(sql, seq, number, customId, model, order, start, length) > 0;
  }

  drop(seq: number): void {
    this.#database.run("DELETE FROM lines WHERE batch = ?", seq);
    this.#database.run("DELETE FROM answers WHERE batch = ?", seq);
  }

  waiting(seq: number, after: WaitingLine | undefined, limit: number): readonly WaitingLine[] {
    const { model, order, number } = after ?? NO_LINE;
    const sql = `SELECT * FROM lines WHERE batch = ? AND outcome IS NULL AND (model, place, number) > (?, ?, ?)
      ORDER BY model, place, number LIMIT ?`;
    return this.#database.all(sql, seq, model, order, number, limit).map(toLine);
  }

  /** False if the line has an outcome already. */
  settle(seq: number, number: number, outcome: LineOutcome): boolean {
    const sql = "UPDATE lines SET outcome = ? WHERE batch = ? AND number = ? AND outcome IS NULL";
    return this.#database.run(sql, outcome, seq, number) > 0;
  }

  addAnswer(seq: number, number: number, { status, requestId, body }: RouteAnswer): void {
    const sql = "INSERT INTO answers (batch, number, status, request_id, body) VALUES (?, ?, ?, ?, ?)";
    this.#database.run(sql, seq, number, status, requestId, body);
  }

  /** Returns how many had none. */
  settleRest(seq: number, outcome: LineOutcome): number {
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
