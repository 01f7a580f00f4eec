import { z } from "zod";
import { list } from "../../../http/input/bounded-lists.ts";

const textPart = z.object({
  type: z.enum(["input_text", "output_text"]).describe("Both mean text: clients send output back as input."),
  text: z.string(),
});

const imagePart = z.object({
  type: z.literal("input_image"),
  image_url: z.string().nullish().describe("The image as a data: URL; remote URLs are not fetched."),
  file_id: z.string().nullish().describe("Refused: there are no stored files."),
  detail: z.string().nullish().describe("Ignored."),
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
    content: z.union([z.string(), list(outputPart)]).describe("As the last item it is continued."),
  }),
]);

const reasoningTexts = list(z.object({ text: z.string() })).nullish();

/** One item of a conversation, as a client sends it or as it is stored for a later response. */
export const inputItemSchema = z.discriminatedUnion(
  "type",
  [
    messageItem,
    z.object({
      type: z.literal("function_call"),
      call_id: z.string(),
      name: z.string(),
      arguments: z.string().describe("JSON text."),
    }),
    z.object({
      type: z.literal("function_call_output"),
      call_id: z.string().describe("ID of the call this is the result of."),
      output: inputContent.describe("Text, or parts of text and images."),
    }),
    z.object({
      type: z.literal("reasoning"),
      summary: reasoningTexts.describe("The model's earlier reasoning, for templates that use it."),
      content: reasoningTexts,
      encrypted_content: z.string().nullish().describe("Ignored."),
    }),
    z.object({
      type: z.literal("item_reference"),
      id: z.string().describe("ID of an output item of a stored response."),
    }),
  ],
  {
    error:
      "must be a message, a function_call, a function_call_output, a reasoning item or an item_reference",
  },
);
type AnyItem = z.output<typeof inputItemSchema>;
export type ItemReference = Extract<AnyItem, { type: "item_reference" }>;
/** An item that is not a reference. */
export type InputItem = Exclude<AnyItem, ItemReference>;
