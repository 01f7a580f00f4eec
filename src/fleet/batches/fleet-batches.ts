import type { BatchRoom } from "../../batches/batch-room.ts";
import type { RunLine } from "../../batches/batch-format.ts";
import type { Page, PageQuery } from "../../batches/batch-store.ts";
import type { Batch, FilePurpose, StoredFile, Viewer } from "../../batches/batch.ts";
import type { Batches, FileContent, NewBatch, ReceivedFile } from "../../batches/batches.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { JetStreamPlace } from "./jetstream-place.ts";
import { SharedBatches, type SharedBatchesOptions } from "./shared-batches.ts";
import { isSharedId } from "./shared-ids.ts";

export interface FleetBatchesOptions extends Omit<SharedBatchesOptions, "pool" | "runLine"> {
  /** What this machine has had before, and has where the fleet has no place for batches. */
  readonly own: BatchRoom;
}

type Desk = Omit<Batches, "maxFileBytes" | "maxLines">;

/** Files and batches of the fleet, where it has a place for them, and those of this machine; ids tell which is which. */
export class FleetBatches implements Batches {
  readonly #options: FleetBatchesOptions;
  readonly #own: BatchRoom;
  readonly #place: JetStreamPlace;
  #shared: SharedBatches | undefined;

  constructor(options: FleetBatchesOptions) {
    this.#options = options;
    this.#own = options.own;
    this.#place = options.place;
  }

  get maxFileBytes(): number {
    return this.#own.maxFileBytes;
  }

  get maxLines(): number {
    return this.#own.maxLines;
  }

  /** Batches that are not over, without those that another machine leads. */
  get running(): number {
    return this.#own.running + (this.#shared?.running ?? 0);
  }

  async start(runLine: RunLine): Promise<void> {
    await this.#own.start(runLine);
    this.#shared = new SharedBatches({ ...this.#options, pool: this.#own.pool, runLine });
  }

  /** Removes what the fleet has kept for long enough. */
  async sweep(): Promise<void> {
    await this.#shared?.sweep();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#own.stop(), this.#shared?.stop()]);
  }

  async close(): Promise<void> {
    await Promise.all([this.#own.close(), this.#shared?.stop()]);
  }

  async receive(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<ReceivedFile> {
    const home = await this.#place.home();
    return await (home === "machine" ? this.#own : this.#desk()).receive(pieces);
  }

  async file(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<StoredFile> {
    return await this.#of(id).file(viewer, id, purposes);
  }

  async files(query: PageQuery & { readonly purposes: readonly FilePurpose[] }): Promise<Page<StoredFile>> {
    return await this.#page(query, async (desk, each) => await desk.files({ ...query, ...each }));
  }

  async content(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<FileContent> {
    return await this.#of(id).content(viewer, id, purposes);
  }

  async deleteFile(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<void> {
    await this.#of(id).deleteFile(viewer, id, purposes);
  }

  async create(batch: NewBatch): Promise<Batch> {
    return await this.#of(batch.inputFile.id).create(batch);
  }

  async batch(viewer: Viewer, api: string, id: string): Promise<Batch> {
    return await this.#of(id).batch(viewer, api, id);
  }

  async batches(query: PageQuery & { readonly api: string }): Promise<Page<Batch>> {
    return await this.#page(query, async (desk, each) => await desk.batches({ ...query, ...each }));
  }

  async cancel(viewer: Viewer, api: string, id: string): Promise<Batch> {
    return await this.#of(id).cancel(viewer, api, id);
  }

  async deleteBatch(viewer: Viewer, api: string, id: string): Promise<void> {
    await this.#of(id).deleteBatch(viewer, api, id);
  }

  #of(id: string): Desk {
    return isSharedId(id) ? this.#desk() : this.#own;
  }

  #desk(): Desk {
    if (this.#shared) return this.#shared.desk;
    throw new ServiceError("shutting_down", "The daemon has not started yet.");
  }

  /** The machine's own are a list of their own, behind the fleet's where the newest come first. */
  async #page<Item extends { readonly id: string }>(
    query: PageQuery,
    ask: (desk: Desk, query: PageQuery) => Promise<Page<Item>>,
  ): Promise<Page<Item>> {
    if ((await this.#place.home()) === "machine") return await ask(this.#own, query);
    const { limit, descending, after, before } = query;
    const whole = { ...query, after: undefined, before: undefined };
    const shared = this.#desk();
    const [first, second] = descending ? [shared, this.#own] : [this.#own, shared];
    const isOf = (desk: Desk, id: string): boolean => (desk === shared) === isSharedId(id);
    const isBackward = after === undefined && before !== undefined;
    const cursor = after ?? before;
    const [start, rest] = isBackward ? [second, first] : [first, second];
    if (cursor !== undefined && isOf(rest, cursor)) return await ask(rest, query);
    const page = await ask(start, query);
    if (page.items.length === limit) {
      const hasMore = page.hasMore || (await ask(rest, { ...whole, limit: 1 })).items.length > 0;
      return { ...page, hasMore };
    }
    // What is right before the first of the second list is the end of the first one.
    const further = await ask(rest, {
      ...whole,
      descending: isBackward ? !descending : descending,
      limit: limit - page.items.length,
    });
    const items = isBackward
      ? further.items.toReversed().concat(page.items)
      : [...page.items, ...further.items];
    return { items, hasMore: further.hasMore };
  }
}
