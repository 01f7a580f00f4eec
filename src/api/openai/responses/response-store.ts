import { z } from "zod";
import { ServiceError } from "../../../errors/service-error.ts";
import { sizeOf } from "../../../json/json-values.ts";
import { RecordsUnreachable, type SharedRecords } from "../../services.ts";
import { type InputItem, inputItemSchema } from "./input-items.ts";
import { type OutputItem, type ResponseObject, responseSchema } from "./response-object.ts";
import type { ResponseRequest } from "./response-schema.ts";

/** Limit in characters of JSON, images included: thousands of long conversations in at most 128 MiB of memory. */
const MAX_STORED_CHARACTERS = 64 * 2 ** 20;

export interface StoredResponse {
  readonly response: ResponseObject;
  /** The whole conversation, including the response's output. */
  readonly items: readonly InputItem[];
  /** The API key that it belongs to, as in the context of a request. */
  readonly owner: string | undefined;
}

/** Responses that later requests can continue; the least recently used make room for new ones. */
export class ResponseStore {
  /** Least recently used first. */
  readonly #responses = new Map<string, StoredResponse & { readonly size: number }>();
  readonly #items = new Map<string, { readonly item: OutputItem; readonly owner: string | undefined }>();
  readonly #limit: number;
  #size = 0;

  constructor(limit = MAX_STORED_CHARACTERS) {
    this.#limit = limit;
  }

  /** Stores a response, unless it exceeds the limit alone. */
  add(response: ResponseObject, items: readonly InputItem[], owner?: string): void {
    const size = sizeOf(response) + sizeOf(items);
    if (size > this.#limit) return;
    this.#responses.set(response.id, { response, items, owner, size });
    for (const item of response.output) this.#items.set(item.id, { item, owner });
    this.#size += size;
    for (const id of this.#responses.keys()) {
      if (this.#size <= this.#limit) break;
      this.delete(id);
    }
  }

  /** @param viewer the key that asks; without one, everything is shown */
  get(id: string, viewer?: string): StoredResponse | undefined {
    const stored = this.#responses.get(id);
    if (!stored || !maySee(viewer, stored.owner)) return undefined;
    this.#responses.delete(id);
    this.#responses.set(id, stored);
    return stored;
  }

  /** An output item of a stored response. */
  item(id: string, viewer?: string): OutputItem | undefined {
    const found = this.#items.get(id);
    return found && maySee(viewer, found.owner) ? found.item : undefined;
  }

  /** Returns false when there is no response with this ID. */
  delete(id: string, viewer?: string): boolean {
    const stored = this.#responses.get(id);
    if (!stored || !maySee(viewer, stored.owner)) return false;
    this.#responses.delete(id);
    for (const item of stored.response.output) this.#items.delete(item.id);
    this.#size -= stored.size;
    return true;
  }
}

function maySee(viewer: string | undefined, owner: string | undefined): boolean {
  return viewer === undefined || viewer === owner;
}

const pointerSchema = z.object({ response: z.string() });

/** Anyone who may use the fleet's message server may have written it. */
const recordSchema = z.object({
  response: responseSchema,
  items: z.array(z.unknown().refine(isInputItem)),
  owner: z.string().optional(),
});

/** What a request refers to. */
type Referred = Pick<ResponseStore, "get" | "item">;

/** The responses of this machine and, in a fleet, those of the others. */
export class StoredResponses {
  readonly #local: ResponseStore;
  readonly #shared: SharedRecords | undefined;

  constructor(local: ResponseStore, shared: SharedRecords | undefined) {
    this.#local = local;
    this.#shared = shared;
  }

  /** Keeps a response; when it resolves, other machines find it too. */
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
   * What this machine has itself is found without asking the others.
   * @param viewer as in the context of a request
   * @throws ServiceError fleet_unreachable when only others may have it, and cannot be asked
   */
  async get(id: string, viewer: string | undefined): Promise<StoredResponse | undefined> {
    const own = this.#local.get(id, viewer);
    if (own === undefined) return await this.#find(id, viewer);
    if ((await this.#shared?.isErased(id)) !== true) return own;
    this.#local.delete(id, viewer);
    return undefined;
  }

  /**
   * Returns false when there is no response with this ID.
   * @throws ServiceError fleet_unreachable when the others would keep it; then it is not deleted here either
   */
  async delete(id: string, viewer: string | undefined): Promise<boolean> {
    const found = await this.get(id, viewer);
    if (found === undefined) return false;
    const shared = this.#shared;
    const erased = await shared?.erase(id);
    if (erased) throw away(`Response "${id}" cannot be deleted from all machines now`, erased);
    this.#local.delete(id, viewer);
    // What is left of these leads nowhere.
    await Promise.all(found.response.output.map(async (item) => await shared?.erase(item.id)));
    return true;
  }

  /** Brings what a request refers to, from wherever it is. @throws as {@link get} */
  async referred(
    { input, previous_response_id: previous }: Pick<ResponseRequest, "input" | "previous_response_id">,
    viewer: string | undefined,
  ): Promise<Referred> {
    const earlier = previous == null ? undefined : await this.get(previous, viewer);
    const items = new Map<string, OutputItem>();
    for (const item of typeof input === "string" ? [] : (input ?? [])) {
      if (item.type !== "item_reference" || items.has(item.id)) continue;
      const found = this.#local.item(item.id, viewer) ?? (await this.#findItem(item.id, viewer));
      if (found) items.set(item.id, found);
    }
    return { get: () => earlier, item: (id) => items.get(id) };
  }

  /** A response of another machine. Those of a key are for that key alone. */
  async #find(id: string, viewer: string | undefined): Promise<StoredResponse | undefined> {
    const found = decode(recordSchema, await this.#record(id, "Response"));
    if (found?.response.id !== id || found.owner !== viewer) return undefined;
    // Each has been checked; they are kept as they came, with the fields that only lists of items show.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return { response: found.response, items: found.items as readonly InputItem[], owner: found.owner };
  }

  async #findItem(id: string, viewer: string | undefined): Promise<OutputItem | undefined> {
    const pointer = decode(pointerSchema, await this.#record(id, "Item"));
    const found = pointer && (await this.get(pointer.response, viewer));
    return found?.response.output.find((item) => item.id === id);
  }

  async #record(id: string, what: "Response" | "Item"): Promise<Uint8Array | undefined> {
    const found = isName(id) ? await this.#shared?.get(id) : undefined;
    if (!(found instanceof RecordsUnreachable)) return found;
    throw away(
      `${what} "${id}" is not on this machine, and it cannot ask for those of the others now`,
      found,
    );
  }
}

function away(what: string, { why, retryAfterSecs }: RecordsUnreachable): ServiceError {
  return new ServiceError("fleet_unreachable", `${what}: ${why}.`, { retryAfterSecs });
}

/** A client's ID could be anything, and must not name another record. */
function isName(id: string): boolean {
  return /^[a-z]{2,8}_[0-9a-f]{32}$/.test(id);
}

function isInputItem(value: unknown): boolean {
  const { type, item } = z
    .looseObject({ type: z.unknown(), item: z.unknown() })
    .partial()
    .catch({})
    .parse(value);
  // Such an item is kept in the form that it was given when it came.
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
  if (record === undefined) return undefined;
  try {
    return schema.safeParse(JSON.parse(new TextDecoder().decode(record))).data;
  } catch {
    return undefined;
  }
}
