import { ServiceError } from "../../../errors/service-error.ts";
import type { InputItem, ItemReference } from "./input-items.ts";
import type { Conversation } from "./response-request.ts";
import type { ResponseRequest } from "./response-schema.ts";
import type { ResponseStore } from "./response-store.ts";

/**
 * The conversation a request continues: that of the previous response, then its own input.
 * @throws ServiceError previous_response_not_found, or invalid_parameter for an item that is not stored
 */
export function resolveConversation(
  { input, previous_response_id: previous }: Pick<ResponseRequest, "input" | "previous_response_id">,
  store: Pick<ResponseStore, "get" | "item">,
): Conversation {
  const earlier = previous == null ? [] : earlierItems(previous, store);
  const own = typeof input === "string" ? [{ role: "user" as const, content: input }] : (input ?? []);
  const items = own.map((item, index) =>
    item.type === "item_reference" ? referredItem(item, index, store) : item,
  );
  return { items: [...earlier, ...items], earlier: earlier.length };
}

function earlierItems(id: string, store: Pick<ResponseStore, "get">): readonly InputItem[] {
  const stored = store.get(id);
  if (stored) return stored.items;
  throw new ServiceError(
    "previous_response_not_found",
    `Response "${id}" was not found; it may have been removed to free memory. Send the whole conversation as input.`,
    { param: "previous_response_id" },
  );
}

function referredItem({ id }: ItemReference, index: number, store: Pick<ResponseStore, "item">): InputItem {
  const item = store.item(id);
  if (item) return item;
  throw new ServiceError(
    "invalid_parameter",
    `input.${index}.id: item "${id}" was not found; it may have been removed to free memory. Send the item itself.`,
    { param: `input.${index}.id` },
  );
}
