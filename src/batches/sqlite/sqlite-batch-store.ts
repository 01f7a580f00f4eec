import { ServiceError } from "../../errors/service-error.ts";
import type { BatchChange, BatchStore, Page, PageQuery } from "../batch-store.ts";
import type {
  AnsweredLine,
  Batch,
  BatchStatus,
  BatchUsage,
  FilePurpose,
  LineOutcome,
  RouteAnswer,
  StoredFile,
  Viewer,
  PendingLine,
} from "../batch.ts";
import { BatchesTable, FilesTable, LinesTable } from "./tables.ts";
import { Database } from "./database.ts";

/** Store of one machine in an SQLite database. Its calls are synchronous, so they cannot interleave. */
export class SqliteBatchStore implements BatchStore {
  readonly #database: Database;
  readonly #files: FilesTable;
  readonly #batches: BatchesTable;
  readonly #lines: LinesTable;

  private constructor(database: Database, now: () => number) {
    this.#database = database;
    this.#files = new FilesTable(database);
    this.#batches = new BatchesTable(database, now);
    this.#lines = new LinesTable(database);
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
    this.#files.add(file);
  }

  async file(id: string, viewer: Viewer): Promise<StoredFile | undefined> {
    return this.#files.get(id, viewer);
  }

  async files(query: PageQuery & { readonly purposes: readonly FilePurpose[] }): Promise<Page<StoredFile>> {
    return this.#files.page(query);
  }

  async removeFile(id: string): Promise<void> {
    this.#files.remove(id);
  }

  async fileIds(): Promise<readonly string[]> {
    return this.#files.ids();
  }

  async expiredFiles(time: number): Promise<readonly string[]> {
    return this.#files.expiredBy(time);
  }

  async storedBytes(): Promise<number> {
    return this.#files.bytes() + this.#batches.answerBytes();
  }

  async addBatch(batch: Batch): Promise<void> {
    this.#batches.add(batch);
  }

  async batch(id: string, viewer: Viewer): Promise<Batch | undefined> {
    return this.#batches.get(id, viewer);
  }

  async batches(query: PageQuery & { readonly api: string }): Promise<Page<Batch>> {
    return this.#batches.page(query);
  }

  async unfinished(): Promise<readonly Batch[]> {
    return this.#batches.unfinished();
  }

  async endedBefore(time: number): Promise<readonly string[]> {
    return this.#batches.endedBefore(time);
  }

  async change(id: string, from: readonly BatchStatus[], change: BatchChange): Promise<Batch | undefined> {
    return this.#database.transaction(() => this.#batches.change(id, from, change));
  }

  async finish(id: string, change: BatchChange, files: readonly StoredFile[]): Promise<Batch> {
    const batch = this.#database.transaction(() => {
      for (const file of files) this.#files.add(file);
      const seq = this.#seq(id);
      this.#lines.deleteBatch(seq);
      this.#batches.clearAnswerBytes(seq);
      return this.#batches.change(id, undefined, change);
    });
    this.#database.run("PRAGMA incremental_vacuum");
    return batch ?? throwNotFound(id);
  }

  async removeBatch(id: string): Promise<void> {
    this.#database.transaction(() => {
      const seq = this.#batches.seq(id);
      if (seq === undefined) return;
      this.#lines.deleteBatch(seq);
      this.#batches.remove(id);
    });
  }

  async addLines(id: string, lines: readonly PendingLine[]): Promise<readonly PendingLine[]> {
    return this.#database.transaction(() => {
      const seq = this.#seq(id);
      return lines.filter((line) => !this.#lines.add(seq, line));
    });
  }

  async deleteLines(id: string): Promise<void> {
    this.#database.transaction(() => this.#lines.deleteBatch(this.#seq(id)));
  }

  async pendingLines(
    id: string,
    after: PendingLine | undefined,
    limit: number,
  ): Promise<readonly PendingLine[]> {
    return this.#lines.pending(this.#seq(id), after, limit);
  }

  async saveAnswer(
    id: string,
    number: number,
    outcome: LineOutcome,
    answer: RouteAnswer,
    usage: BatchUsage,
  ): Promise<boolean> {
    return this.#database.transaction(() => {
      const seq = this.#seq(id);
      if (!this.#lines.setOutcome(seq, number, outcome)) return false;
      this.#lines.addAnswer(seq, number, answer);
      this.#batches.addCounts(seq, outcome, 1, answer.body.length, usage);
      return true;
    });
  }

  async answerRemaining(id: string, outcome: LineOutcome): Promise<void> {
    this.#database.transaction(() => {
      const seq = this.#seq(id);
      this.#batches.addCounts(seq, outcome, this.#lines.setRemainingOutcomes(seq, outcome), 0);
    });
  }

  async answers(id: string, afterNumber: number, limit: number): Promise<readonly AnsweredLine[]> {
    return this.#lines.answers(this.#seq(id), afterNumber, limit);
  }

  close(): void {
    this.#database.close();
  }

  #seq(id: string): number {
    return this.#batches.seq(id) ?? throwNotFound(id);
  }
}

function throwNotFound(id: string): never {
  throw new ServiceError("batch_not_found", `There is no batch with the id "${id}", or no longer.`);
}
