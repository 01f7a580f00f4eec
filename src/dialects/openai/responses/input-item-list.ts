import { z } from "zod";
import { ServiceError } from "../../../errors/service-error.ts";
import { isMessage, type InputItem } from "./input-items.ts";
import type { StoredResponse } from "./response-store.ts";

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;

/** GET /v1/responses/{id}/input_items. */
export const inputItemQuerySchema = z.object({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(MAX_LIMIT)
    .default(DEFAULT_LIMIT)
    .describe("Maximum number of items to return."),
  order: z.enum(["asc", "desc"]).default("desc").describe("desc: the last item first."),
  after: z.string().optional().describe("Return the items after the one with this ID."),
});

export const inputItemListSchema = z
  .object({
    object: z.literal("list"),
    data: z.array(z.looseObject({ id: z.string(), type: z.string() })),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  })
  .meta({ id: "InputItemList" });

type ListedItem = z.output<typeof inputItemListSchema>["data"][number];

/**
 * The input items of a response, including those of earlier responses.
 * @throws ServiceError invalid_parameter when `after` is not one of them
 */
export function toInputItemList(
  { response, items }: StoredResponse,
  { limit, order, after }: z.output<typeof inputItemQuerySchema>,
): z.output<typeof inputItemListSchema> {
  const input = items.slice(0, items.length - response.output.length);
  const listed = input.map((item, index) => toListed(item, `${response.id.replace(/^resp_/, "")}${index}`));
  const ordered = order === "asc" ? listed : listed.toReversed();
  const begin = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
  if (begin === 0 && after !== undefined) {
    throw new ServiceError("invalid_parameter", `after: the response has no input item "${after}".`, {
      param: "after",
    });
  }
  const data = ordered.slice(begin, begin + limit);
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: begin + limit < ordered.length,
  };
}

/** How OpenAI's IDs of each type begin. */
const PREFIXES: Readonly<Record<string, string>> = {
  function_call: "fc",
  function_call_output: "fco",
  custom_tool_call: "ctc",
  custom_tool_call_output: "ctco",
  reasoning: "rs",
};

/** Output items of earlier responses have an ID; items from a client get one from their position. */
function toListed(item: InputItem, position: string): ListedItem {
  if (item.type === "history") return { id: `item_${position}`, ...item.item };
  if (item.type === "reasoning") return { id: `rs_${position}`, ...item };
  if (!isMessage(item)) {
    return { id: `${PREFIXES[item.type] ?? "item"}_${position}`, status: "completed", ...item };
  }
  const text = item.role === "assistant" ? "output_text" : "input_text";
  const content = typeof item.content === "string" ? [{ type: text, text: item.content }] : item.content;
  return { id: `msg_${position}`, status: "completed", ...item, type: "message", content };
}
