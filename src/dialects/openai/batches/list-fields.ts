import { z } from "zod";
import type { Page } from "../../../batches/batch-store.ts";

/** The API's own: an hour and thirty days. */
export const MIN_LIFE_SECS = 3600;
export const MAX_LIFE_SECS = 30 * 24 * 3600;

/** A page of a list, with its cursors. */
export function listSchema<Item extends z.ZodType>(item: Item) {
  return z.object({
    object: z.literal("list"),
    data: z.array(item),
    first_id: z.string().nullable(),
    last_id: z.string().nullable().describe("Send it as after to get the next page."),
    has_more: z.boolean(),
  });
}

export function toList<Item extends { readonly id: string }, Wire extends object>(
  { items, hasMore }: Page<Item>,
  toWire: (item: Item) => Wire,
) {
  return {
    object: "list" as const,
    data: items.map(toWire),
    first_id: items[0]?.id ?? null,
    last_id: items.at(-1)?.id ?? null,
    has_more: hasMore,
  };
}

/** Unix seconds, as this API has all times. */
export function toSeconds(millis: number): number {
  return Math.floor(millis / 1000);
}
