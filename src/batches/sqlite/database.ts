import path from "node:path";
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from "node:sqlite";
import { ServiceError } from "../../errors/service-error.ts";
import { SQLITE, sqliteCode } from "../../files/locks.ts";

/** Version of {@link SCHEMA}: every change of it needs a new version and a migration. */
export const SCHEMA_VERSION = 1;

/** Tables. Times are Unix milliseconds; `expires` is null for files that never expire. `batch` is the batch's seq. */
export const SCHEMA = `
CREATE TABLE files (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  purpose TEXT NOT NULL,
  name TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER
) STRICT;
CREATE TABLE batches (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  api TEXT NOT NULL,
  status TEXT NOT NULL,
  created INTEGER NOT NULL,
  details TEXT NOT NULL,
  total INTEGER NOT NULL DEFAULT 0,
  succeeded INTEGER NOT NULL DEFAULT 0,
  errored INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  expired INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  cached_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  reasoning_tokens INTEGER NOT NULL DEFAULT 0,
  answer_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE lines (
  batch INTEGER NOT NULL,
  number INTEGER NOT NULL,
  custom_id TEXT NOT NULL,
  model TEXT NOT NULL,
  place TEXT NOT NULL,
  start INTEGER NOT NULL,
  length INTEGER NOT NULL,
  outcome TEXT,
  PRIMARY KEY (batch, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX lines_by_custom_id ON lines (batch, custom_id);
CREATE INDEX waiting_lines ON lines (batch, model, place, number) WHERE outcome IS NULL;
CREATE TABLE answers (
  batch INTEGER NOT NULL,
  number INTEGER NOT NULL,
  status INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (batch, number)
) STRICT;
`;

export type Row = Readonly<Record<string, SQLOutputValue>>;

/** Thrown if the database is damaged and must be moved aside. */
export class DamagedDatabase extends Error {
  override readonly name = "DamagedDatabase";
}

/** Open database that caches prepared statements and translates errors to {@link ServiceError}. */
export class Database {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /**
   * Opens a database, or creates it.
   * @throws DamagedDatabase, or ServiceError batch_store_unavailable or insufficient_disk
   */
  static async open(file: string): Promise<Database> {
    const { DatabaseSync: Sqlite } = await import("node:sqlite");
    return translateErrors(() => {
      // Unlike Node, SQLite does not convert long paths for Windows.
      const database = new Sqlite(path.toNamespacedPath(file));
      try {
        prepare(database);
      } catch (error) {
        database.close();
        throw error;
      }
      return new Database(database);
    });
  }

  run(sql: string, ...values: SQLInputValue[]): number {
    return translateErrors(() => Number(this.#statement(sql).run(...values).changes));
  }

  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return translateErrors(() => this.#statement(sql).get(...values));
  }

  all(sql: string, ...values: SQLInputValue[]): readonly Row[] {
    return translateErrors(() => this.#statement(sql).all(...values));
  }

  /** Runs a synchronous action in a transaction. */
  transaction<Result>(action: () => Result): Result {
    return translateErrors(() => {
      this.#database.exec("BEGIN IMMEDIATE");
      try {
        const result = action();
        this.#database.exec("COMMIT");
        return result;
      } catch (error) {
        if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
        throw error;
      }
    });
  }

  /** Safe to call twice. */
  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  #statement(sql: string): StatementSync {
    if (!this.#database.isOpen) throw unavailable("it is closed");
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

function prepare(database: DatabaseSync): void {
  // Must precede the first table; incremental vacuum returns freed pages to the disk.
  database.exec("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
  if (version === 0) database.exec(`BEGIN; ${SCHEMA} PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
  else if (version !== SCHEMA_VERSION) throw unavailable("another version of Daybreak has made it");
}

function translateErrors<Result>(action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    const code = sqliteCode(error);
    if (code === SQLITE.corrupt || code === SQLITE.notADatabase)
      throw new DamagedDatabase("the database is damaged", { cause: error });
    if (code === SQLITE.full) {
      throw new ServiceError(
        "insufficient_disk",
        "The disk is full, so the batch cannot be saved. Delete what is not needed; what has been answered is kept.",
        { cause: error },
      );
    }
    if (code !== undefined && error instanceof Error) throw unavailable(error.message, error);
    throw error;
  }
}

function unavailable(why: string, cause?: unknown): ServiceError {
  return new ServiceError("batch_store_unavailable", `The store of batches cannot be used: ${why}.`, {
    cause,
  });
}
