import type { Page, PageQuery } from "../batch-store.ts";
import type { FilePurpose, StoredFile, Viewer } from "../batch.ts";
import type { Database } from "./database.ts";
import { orNull, toFile } from "./rows.ts";
import { selectPage } from "./select-page.ts";

/** The rows of files. */
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
      orNull(expiresAt),
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
