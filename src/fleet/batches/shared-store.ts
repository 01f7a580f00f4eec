import type { z } from "zod";
import { mapInGroups } from "../../async/promises.ts";
import type { BatchChange, BatchRecords, Page, PageQuery } from "../../batches/batch-store.ts";
import {
  type Batch,
  type BatchStatus,
  type FilePurpose,
  type StoredFile,
  UNFINISHED_STATUSES,
  type Viewer,
} from "../../batches/batch.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { readJson, writeJson } from "../wire-format.ts";
import type { AnswerStore } from "./answer-store.ts";
import {
  possibleBatchIds,
  sharedBatchSchema,
  fileSchema,
  isSharedId,
  NO_QUEUE,
  type SharedBatch,
} from "./batch-record.ts";
import type { JetStreamStore } from "./jetstream-store.ts";
import type { Leases } from "./leases.ts";

/** Maximum parallel requests to the server. */
const PARALLEL_READS = 32;

interface SharedStoreOptions {
  readonly jetStream: JetStreamStore;
  readonly answers: AnswerStore;
  readonly leases: Leases;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
}

/** Fields of a fleet batch that may change. */
type SharedChange = BatchChange &
  Partial<Pick<SharedBatch, "groups" | "queue" | "files" | "counts" | "usage">>;

/** Files and batches of all machines. Changes use compare-and-swap, so that none undoes another one. */
export class SharedStore implements BatchRecords {
  readonly #options: SharedStoreOptions;

  constructor(options: SharedStoreOptions) {
    this.#options = options;
  }

  async addFile(file: StoredFile): Promise<void> {
    await this.#options.jetStream.put(this.#subject("file", file.id), writeJson(file));
  }

  async file(viewer: Viewer, id: string): Promise<StoredFile | undefined> {
    if (!isSharedId(id)) return undefined;
    for (const batch of possibleBatchIds(id)) {
      const file = (await this.#read(batch))?.batch.files.find((each) => each.id === id);
      if (file) return isVisible(file, viewer) ? file : undefined;
    }
    const file = await this.#get("file", id, fileSchema);
    return file && isVisible(file.value, viewer) ? file.value : undefined;
  }

  async files({
    purposes,
    ...query
  }: PageQuery & { readonly purposes: readonly FilePurpose[] }): Promise<Page<StoredFile>> {
    return pageOf(
      (await this.allFiles()).filter(({ purpose }) => purposes.includes(purpose)),
      query,
    );
  }

  async removeFile(id: string): Promise<void> {
    if (!isSharedId(id)) return;
    for (const batch of possibleBatchIds(id)) {
      await this.update(batch, ({ files }) =>
        files.some((file) => file.id === id) ? { files: files.filter((file) => file.id !== id) } : undefined,
      );
    }
    await this.#options.jetStream.purge("batches", this.#subject("file", id));
  }

  async expiredFiles(time: number): Promise<readonly string[]> {
    return (await this.allFiles()).filter(({ expiresAt }) => expiresAt <= time).map(({ id }) => id);
  }

  /** Returns 0: the server limits the total itself, which takes no disk of this machine. */
  async storedBytes(): Promise<number> {
    return 0;
  }

  async allFiles(): Promise<readonly StoredFile[]> {
    const uploaded = await this.#all("file", fileSchema);
    const written = (await this.#all("batch", sharedBatchSchema)).flatMap(({ files }) => files);
    return [...uploaded, ...written];
  }

  async addBatch(batch: Batch): Promise<void> {
    const { jetStream, leases } = this.#options;
    // The lease shows all machines that the batch is unfinished; a lease without a batch is removed after a while.
    await leases.create(batch.id);
    const shared: SharedBatch = { ...batch, groups: [], queue: NO_QUEUE, files: [] };
    await jetStream.put(this.#subject("batch", batch.id), writeJson(shared), 0);
    jetStream.announceChange(batch.id);
  }

  /** Returns the batch with its current counts. */
  async batch(viewer: Viewer, id: string): Promise<Batch | undefined> {
    if (!isSharedId(id)) return undefined;
    const batch = (await this.#read(id))?.batch;
    return batch && isVisible(batch, viewer) ? await this.#withCounts(batch) : undefined;
  }

  /** Returns the batch as stored. */
  async recorded(id: string): Promise<SharedBatch | undefined> {
    return (await this.#read(id))?.batch;
  }

  async batches({ api, ...query }: PageQuery & { readonly api: string }): Promise<Page<Batch>> {
    const all = await this.#all("batch", sharedBatchSchema);
    const { items, hasMore } = pageOf(
      all.filter((batch) => batch.api === api),
      query,
    );
    return { items: await Promise.all(items.map(async (batch) => await this.#withCounts(batch))), hasMore };
  }

  async unfinished(): Promise<readonly SharedBatch[]> {
    const ids = await this.#options.leases.ids();
    const read = await mapInGroups(ids, PARALLEL_READS, async (id) => await this.recorded(id));
    return read
      .filter((batch) => batch !== undefined)
      .filter(({ status }) => UNFINISHED_STATUSES.includes(status))
      .toSorted((one, other) => one.createdAt - other.createdAt);
  }

  async change(
    id: string,
    from: readonly BatchStatus[],
    change: SharedChange,
  ): Promise<SharedBatch | undefined> {
    return await this.update(id, ({ status }) => (from.includes(status) ? change : undefined));
  }

  async finish(id: string, change: SharedChange, files: readonly StoredFile[]): Promise<SharedBatch> {
    const ended = await this.change(id, UNFINISHED_STATUSES, { ...change, files });
    if (ended) return ended;
    throw new ServiceError("batch_conflict", `The batch ${id} is over already.`);
  }

  async removeBatch(id: string): Promise<void> {
    await this.#options.jetStream.purge("batches", this.#subject("batch", id));
  }

  /** Returns old batches, except those whose output files have not expired, which would be deleted with them. */
  async endedBefore(time: number): Promise<readonly string[]> {
    const all = await this.#all("batch", sharedBatchSchema);
    return all
      .filter(({ status, createdAt }) => !UNFINISHED_STATUSES.includes(status) && createdAt < time)
      .filter(({ files }) => files.length === 0)
      .map(({ id }) => id);
  }

  /** Returns unfinished batches whose lease was lost, so that no machine leads them. */
  async withoutLease(): Promise<readonly string[]> {
    const all = await this.#all("batch", sharedBatchSchema);
    // A batch's lease is created before it and removed after it.
    const led = new Set(await this.#options.leases.ids());
    return all
      .filter(({ id, status }) => UNFINISHED_STATUSES.includes(status) && !led.has(id))
      .map(({ id }) => id);
  }

  /** Applies the change that `choose` returns for the current batch; returns undefined if it returns none. */
  async update(
    id: string,
    choose: (batch: SharedBatch) => SharedChange | undefined,
  ): Promise<SharedBatch | undefined> {
    const { jetStream, now } = this.#options;
    for (;;) {
      const before = await this.#read(id);
      const change = before && choose(before.batch);
      if (!before || !change) return undefined;
      const { status = before.batch.status } = change;
      const times = { [status]: now(), ...before.batch.times };
      const batch: SharedBatch = { ...before.batch, ...change, times };
      if ((await jetStream.put(this.#subject("batch", id), writeJson(batch), before.seq)) === undefined)
        continue;
      jetStream.announceChange(id);
      return batch;
    }
  }

  async #withCounts(batch: SharedBatch): Promise<SharedBatch> {
    if (!UNFINISHED_STATUSES.includes(batch.status) || batch.status === "validating") return batch;
    const { counts, usage } = await this.#options.answers.tally(batch.id);
    return { ...batch, counts, usage };
  }

  #subject(kind: "file" | "batch", id: string): string {
    return this.#options.jetStream.subject("batches", kind, id);
  }

  async #read(id: string): Promise<{ readonly batch: SharedBatch; readonly seq: number } | undefined> {
    const found = await this.#get("batch", id, sharedBatchSchema);
    return found && { batch: found.value, seq: found.seq };
  }

  /** Reads a record, which is valid only under its own id. */
  async #get<Schema extends z.ZodType<{ id: string }>>(
    kind: "file" | "batch",
    id: string,
    schema: Schema,
  ): Promise<{ readonly value: z.output<Schema>; readonly seq: number } | undefined> {
    const stored = await this.#options.jetStream.get("batches", this.#subject(kind, id));
    const value = stored && readJson(schema, stored.data);
    return stored && value?.id === id ? { value, seq: stored.seq } : undefined;
  }

  async #all<Schema extends z.ZodType<{ id: string }>>(
    kind: "file" | "batch",
    schema: Schema,
  ): Promise<readonly z.output<Schema>[]> {
    const values: z.output<Schema>[] = [];
    await this.#options.jetStream.readAll("batches", this.#subject(kind, "*"), {}, ({ data, subject }) => {
      const value = readJson(schema, data);
      if (value && subject === this.#subject(kind, value.id)) values.push(value);
    });
    return values;
  }
}

function isVisible({ owner }: { readonly owner: string }, viewer: Viewer): boolean {
  return viewer === undefined || owner === viewer;
}

type ListItem = Pick<Batch, "id" | "owner" | "createdAt">;

/** Returns one page of the items that a viewer sees. */
function pageOf<Item extends ListItem>(all: readonly Item[], query: PageQuery): Page<Item> {
  const { viewer, limit, descending, after, before } = query;
  const visible = all.filter((item) => isVisible(item, viewer));
  const listed = visible.toSorted(
    (one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1),
  );
  if (descending) listed.reverse();
  if (after !== undefined) {
    const start = indexOf(listed, "after", after) + 1;
    return { items: listed.slice(start, start + limit), hasMore: start + limit < listed.length };
  }
  if (before !== undefined) {
    const end = indexOf(listed, "before", before);
    return { items: listed.slice(Math.max(0, end - limit), end), hasMore: end > limit };
  }
  return { items: listed.slice(0, limit), hasMore: listed.length > limit };
}

function indexOf(listed: readonly ListItem[], param: string, cursor: string): number {
  const index = listed.findIndex(({ id }) => id === cursor);
  if (index >= 0) return index;
  const message = `${param}: nothing in the list has the id "${cursor.slice(0, 100)}".`;
  throw new ServiceError("invalid_parameter", message, { param });
}
