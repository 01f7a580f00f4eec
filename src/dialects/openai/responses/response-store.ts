import { sizeOf } from "../../../json/size-of.ts";
import type { InputItem } from "./input-items.ts";
import type { OutputItem, ResponseObject } from "./response-object.ts";

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
