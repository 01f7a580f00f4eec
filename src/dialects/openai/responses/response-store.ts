import { sizeOf } from "../../../json/size-of.ts";
import type { InputItem } from "./input-items.ts";
import type { OutputItem, ResponseObject } from "./response-object.ts";

/**
 * Most characters of JSON that are kept, images included: thousands of long conversations, and at most 128 MiB
 * of memory, as a character takes up to two bytes.
 */
const MAX_STORED_CHARACTERS = 64 * 2 ** 20;

export interface StoredResponse {
  readonly response: ResponseObject;
  /** The whole conversation, the response's own output included. */
  readonly items: readonly InputItem[];
}

/** Responses that later ones may go on from. Those not used for longest make room for new ones. */
export class ResponseStore {
  /** In the order of their last use. */
  readonly #responses = new Map<string, StoredResponse & { readonly size: number }>();
  readonly #items = new Map<string, OutputItem>();
  readonly #limit: number;
  #size = 0;

  constructor(limit = MAX_STORED_CHARACTERS) {
    this.#limit = limit;
  }

  /** Keeps a response, unless it alone is beyond the limit. */
  add(response: ResponseObject, items: readonly InputItem[]): void {
    const size = sizeOf(response) + sizeOf(items);
    if (size > this.#limit) return;
    this.#responses.set(response.id, { response, items, size });
    for (const item of response.output) this.#items.set(item.id, item);
    this.#size += size;
    for (const id of this.#responses.keys()) {
      if (this.#size <= this.#limit) break;
      this.delete(id);
    }
  }

  get(id: string): StoredResponse | undefined {
    const stored = this.#responses.get(id);
    if (stored) {
      this.#responses.delete(id);
      this.#responses.set(id, stored);
    }
    return stored;
  }

  /** An item of the output of a kept response. */
  item(id: string): OutputItem | undefined {
    return this.#items.get(id);
  }

  /** False when there is no such response. */
  delete(id: string): boolean {
    const stored = this.#responses.get(id);
    if (!stored) return false;
    this.#responses.delete(id);
    for (const item of stored.response.output) this.#items.delete(item.id);
    this.#size -= stored.size;
    return true;
  }
}
