import { z } from "zod";
import { ServiceError } from "../../../errors/service-error.ts";
import { approximateJsonLength, isRecord, tryJson } from "../../../json/json-values.ts";
import { RecordsUnreachable, type SharedRecords } from "../../services.ts";
import { type InputItem, inputItemSchema } from "./input-items.ts";
import { type OutputItem, type ResponseObject, responseSchema } from "./response-object.ts";

/** Limit in characters of JSON, images included: thousands of long conversations, at most 128 MiB of memory. */
const MAX_STORED_CHARACTERS = 64 * 2 ** 20;

export interface StoredResponse {
  readonly response: ResponseObject;
  /** Complete conversation, including the response's output. */
  readonly items: readonly InputItem[];
  /** Owner, from the API key of the request. */
  readonly owner: string | undefined;
}

/** Responses that later requests can continue. Evicts the least recently used ones. */
export class ResponseStore {
  /** Responses, least recently used first. */
  readonly #responses = new Map<string, StoredResponse & { readonly size: number }>();
  readonly #items = new Map<string, { readonly item: OutputItem; readonly owner: string | undefined }>();
  readonly #limit: number;
  #size = 0;

  constructor(limit = MAX_STORED_CHARACTERS) {
    this.#limit = limit;
  }

  /** Stores a response, unless it alone exceeds the limit. */
  add(response: ResponseObject, items: readonly InputItem[], owner?: string): void {
    const size = approximateJsonLength(response) + approximateJsonLength(items);
    if (size > this.#limit) return;
    this.#responses.set(response.id, { response, items, owner, size });
    for (const item of response.output) this.#items.set(item.id, { item, owner });
    this.#size += size;
    for (const id of this.#responses.keys()) {
      if (this.#size <= this.#limit) break;
      this.delete(id);
    }
  }

  /** @param viewer owner of the request; undefined: may read all responses */
  get(id: string, viewer?: string): StoredResponse | undefined {
    const stored = this.#responses.get(id);
    if (!stored || !mayRead(viewer, stored.owner)) return undefined;
    this.#responses.delete(id);
    this.#responses.set(id, stored);
    return stored;
  }

  /** Returns an output item of a stored response. */
  item(id: string, viewer?: string): OutputItem | undefined {
    const found = this.#items.get(id);
    return found && mayRead(viewer, found.owner) ? found.item : undefined;
  }

  /** Deletes a response. Returns false if there is none with this ID. */
  delete(id: string, viewer?: string): boolean {
    const stored = this.#responses.get(id);
    if (!stored || !mayRead(viewer, stored.owner)) return false;
    this.#responses.delete(id);
    for (const item of stored.response.output) this.#items.delete(item.id);
    this.#size -= stored.size;
    return true;
  }
}

function mayRead(viewer: string | undefined, owner: string | undefined): boolean {
  return viewer === undefined || viewer === owner;
}

const pointerSchema = z.object({ response: z.string() });

/** Shared record. Validated, because any client of the fleet's NATS server may have written it. */
const recordSchema = z.object({
  response: responseSchema,
  items: z.array(z.unknown().refine(isInputItem)),
  owner: z.string().optional(),
});

/** Responses of this machine and, in a fleet, of the other machines. */
export class StoredResponses {
  readonly #local: ResponseStore;
  readonly #shared: SharedRecords | undefined;

  constructor(local: ResponseStore, shared: SharedRecords | undefined) {
    this.#local = local;
    this.#shared = shared;
  }

  /** Stores a response. When it resolves, other machines can read it. */
  async add(response: ResponseObject, items: readonly InputItem[], owner: string | undefined): Promise<void> {
    this.#local.add(response, items, owner);
    if (this.#shared === undefined) return;
    const shared = this.#shared;
    await Promise.all([
      shared.put(response.id, encode({ response, items, owner })),
      ...response.output.map(({ id }) => shared.put(id, encode({ response: response.id }))),
    ]);
  }

  /**
   * Returns a response. One of this machine is found without the shared records.
   * @param viewer owner of the request
   * @throws ServiceError fleet_unreachable if only another machine may have it, and the shared records are unreachable
   */
  async get(id: string, viewer: string | undefined): Promise<StoredResponse | undefined> {
    const local = this.#local.get(id, viewer);
    if (local === undefined) return await this.#findShared(id, viewer);
    if ((await this.#shared?.isErased(id)) !== true) return local;
    this.#local.delete(id, viewer);
    return undefined;
  }

  /**
   * Deletes a response on all machines. Returns false if there is none with this ID.
   * @throws ServiceError fleet_unreachable if the shared records are unreachable; then nothing is deleted
   */
  async delete(id: string, viewer: string | undefined): Promise<boolean> {
    const found = await this.get(id, viewer);
    if (found === undefined) return false;
    const shared = this.#shared;
    const erased = await shared?.erase(id);
    if (erased) throw fleetUnreachable(`Response "${id}" cannot be deleted from all machines now`, erased);
    this.#local.delete(id, viewer);
    // Without the response, records of items have no effect, so failures are ignored.
    await Promise.all(found.response.output.map(async (item) => await shared?.erase(item.id)));
    return true;
  }

  /** Returns an output item of a stored response. @throws as {@link get} */
  async item(id: string, viewer: string | undefined): Promise<OutputItem | undefined> {
    const local = this.#local.item(id, viewer);
    if (local !== undefined) return local;
    const pointer = decode(pointerSchema, await this.#sharedRecord(id, "Item"));
    const found = pointer && (await this.get(pointer.response, viewer));
    return found?.response.output.find((item) => item.id === id);
  }

  /** Returns a response of another machine, if it belongs to the viewer. */
  async #findShared(id: string, viewer: string | undefined): Promise<StoredResponse | undefined> {
    const found = decode(recordSchema, await this.#sharedRecord(id, "Response"));
    if (found?.response.id !== id || found.owner !== viewer) return undefined;
    // isInputItem() has checked them. The parsed form is not used: it lacks fields that lists of items return.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return { response: found.response, items: found.items as readonly InputItem[], owner: found.owner };
  }

  async #sharedRecord(id: string, what: "Response" | "Item"): Promise<Uint8Array | undefined> {
    const found = isRecordName(id) ? await this.#shared?.get(id) : undefined;
    if (!(found instanceof RecordsUnreachable)) return found;
    throw fleetUnreachable(
      `${what} "${id}" is not on this machine, and the other machines cannot be reached now`,
      found,
    );
  }
}

function fleetUnreachable(what: string, { why, retryAfterSecs }: RecordsUnreachable): ServiceError {
  return new ServiceError("fleet_unreachable", `${what}: ${why}.`, { retryAfterSecs });
}

/** Checks a client's ID, which must not name a record of another kind. */
function isRecordName(id: string): boolean {
  return /^[a-z]{2,8}_[0-9a-f]{32}$/.test(id);
}

function isInputItem(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { type, item } = value;
  // Items of hosted tools are stored in their parsed form.
  const parsed = inputItemSchema.safeParse(type === "history" ? item : value);
  return parsed.success && type !== "item_reference" && parsed.data.type === type;
}

function encode(value: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

function decode<Schema extends z.ZodType>(
  schema: Schema,
  record: Uint8Array | undefined,
): z.output<Schema> | undefined {
  return record && schema.safeParse(tryJson(new TextDecoder().decode(record))).data;
}
