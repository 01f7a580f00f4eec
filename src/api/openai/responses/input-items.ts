import { z } from "zod";
import { optional } from "../../../http/input/common-fields.ts";
import { list } from "../../../http/input/bounded-lists.ts";
import { builtInCallItems, builtInOutputItems } from "./built-in-calls.ts";

const textPart = z.object({
  type: z
    .enum(["input_text", "output_text"])
    .describe("Both are text, because clients send output back as input."),
  text: z.string(),
});

const imagePart = z.object({
  type: z.literal("input_image"),
  image_url: optional(z.string(), "The image as a data: URL; remote URLs are not fetched."),
  file_id: optional(z.string(), "Refused: there are no stored files."),
  detail: optional(z.string(), "Ignored."),
});

const inputPart = z.discriminatedUnion("type", [
  textPart,
  imagePart,
  z.object({ type: z.literal("input_file") }).describe("Refused: send text or images."),
]);
export type InputPart = z.output<typeof inputPart>;

const outputPart = z.discriminatedUnion("type", [
  textPart,
  z.object({ type: z.literal("refusal"), refusal: z.string() }),
]);

const inputContent = z.union([z.string(), list(inputPart)]);
const type = z.literal("message").nullish();

const messageItem = z.discriminatedUnion("role", [
  z.object({
    type,
    role: z.enum(["system", "developer"]).describe("Instructions; developer is treated as system."),
    content: z.union([z.string(), list(textPart)]),
  }),
  z.object({
    type,
    role: z.literal("user"),
    content: inputContent.describe("Text, or parts of text and images."),
  }),
  z.object({
    type,
    role: z.literal("assistant"),
    content: z.union([z.string(), list(outputPart)]).describe("Text, or parts of text and refusals."),
  }),
]);

const outputFields = {
  call_id: z.string().describe("ID of the tool call that this result is for."),
  output: inputContent.describe("Text, or parts of text and images."),
};
const reasoningTexts = list(z.object({ text: z.string() })).nullish();

/** Fields of an item reference. Some clients omit its type. */
const reference = { id: z.string().describe("ID of an output item of a stored response.") };
const asReference = ({ id }: { id: string }): { type: "item_reference"; id: string } => ({
  type: "item_reference",
  id,
});

/**
 * Types of items that only OpenAI's service produces, such as those of hosted tools. A client that switches servers in
 * the middle of a conversation sends them to this one.
 */
const HISTORY_ITEM =
  /_call$|_call_output$|^(?:mcp_list_tools|mcp_approval_request|mcp_approval_response|tool_search_output|program|program_output|additional_tools|compaction|compaction_trigger)$/;
/** Types that match {@link HISTORY_ITEM} but have a schema, so that errors in their fields are reported. */
const CHECKED_TYPES = new Set([
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
]);

const historyItem = z
  .looseObject({
    type: z.string().refine((word) => HISTORY_ITEM.test(word) && !CHECKED_TYPES.has(word), { abort: true }),
  })
  .describe("An item of a hosted tool; the model reads it as text.")
  .transform((item) => ({ type: "history" as const, item }));
export type HistoryItem = z.output<typeof historyItem>;

const knownItem = z.discriminatedUnion(
  "type",
  [
    z.discriminatedUnion("role", [
      ...messageItem.options,
      z
        .object({ type: z.null().optional(), role: z.undefined().optional(), ...reference })
        .transform(asReference),
    ]),
    z.object({
      type: z.literal("function_call"),
      call_id: z.string(),
      name: z.string(),
      arguments: z.string().describe("JSON text."),
    }),
    z.object({
      type: z.literal("function_call_output"),
      ...outputFields,
    }),
    z.object({
      type: z.literal("custom_tool_call"),
      call_id: z.string(),
      name: z.string(),
      input: z.string(),
    }),
    z.object({
      type: z.literal("custom_tool_call_output"),
      ...outputFields,
    }),
    z.object({
      type: z.literal("reasoning"),
      summary: reasoningTexts.describe("The model's earlier reasoning, for chat templates that include it."),
      content: reasoningTexts,
      encrypted_content: optional(z.string(), "Ignored."),
    }),
    z.object({ type: z.literal("item_reference"), ...reference }),
    ...builtInCallItems,
    ...builtInOutputItems,
  ],
  {
    error: "must be a message, a tool call, a tool call output, a reasoning item or an item_reference",
  },
);

/** Item of a conversation, sent by a client or stored for a later response. */
export const inputItemSchema = z.union([knownItem, historyItem]);
type AnyItem = z.output<typeof inputItemSchema>;
/** Item that is not a reference. */
export type InputItem = Exclude<AnyItem, { type: "item_reference" }>;

type Message = z.output<typeof messageItem>;

/** True for a message, whose type is optional. */
export function isMessage(item: InputItem): item is Message {
  return item.type == null || item.type === "message";
}
