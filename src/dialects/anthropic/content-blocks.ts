import { z } from "zod";
import { list } from "../../http/input/bounded-lists.ts";
import { historyText } from "../../inference/history-text.ts";

export const textBlock = z.object({ type: z.literal("text"), text: z.string() });

const imageBlock = z.object({
  type: z.literal("image"),
  source: z.discriminatedUnion("type", [
    z.object({ type: z.literal("base64"), media_type: z.string(), data: z.string() }),
    z
      .object({ type: z.literal("url"), url: z.string() })
      .describe("A data: URL; remote URLs are not fetched."),
  ]),
});

const documentBlock = z.object({
  type: z.literal("document"),
  title: z.string().nullish(),
  source: z.discriminatedUnion("type", [
    z.object({ type: z.literal("text"), data: z.string() }),
    z.object({ type: z.literal("content"), content: z.union([z.string(), list(textBlock)]) }),
    z.looseObject({ type: z.enum(["base64", "url", "file"]) }).describe("Refused: PDFs cannot be read."),
  ]),
});

const searchResultBlock = z.object({
  type: z.literal("search_result"),
  title: z.string(),
  source: z.string(),
  content: list(textBlock),
});

/**
 * Blocks of tools that Anthropic's servers run, and others that only such a server makes. Clients send them back after they
 * have changed servers.
 */
const HISTORY_BLOCK =
  /_tool_use$|_tool_result$|^(?:container_upload|tool_reference|browser_state|compaction|fallback|tool_addition|tool_removal|mcp_tool_listing)$/;

const historyBlock = z
  .looseObject({ type: z.string().refine((type) => HISTORY_BLOCK.test(type), { abort: true }) })
  .describe("A block of a tool that runs on a server: the model reads it as text.")
  .transform((block) => ({ type: "history" as const, text: historyText(block) }));

const resultBlock = z.union([
  z.discriminatedUnion("type", [textBlock, imageBlock, documentBlock, searchResultBlock]),
  historyBlock,
]);
export type ResultBlock = z.output<typeof resultBlock>;

/** A block of a message, whatever its role. */
export const contentBlock = z.union([
  z.discriminatedUnion("type", [
    textBlock,
    imageBlock,
    documentBlock,
    searchResultBlock,
    z.object({
      type: z.literal("thinking"),
      thinking: z.string(),
      signature: z.string().nullish().describe("Not checked."),
    }),
    z.object({ type: z.literal("redacted_thinking"), data: z.string() }).describe("Accepted and left out."),
    z.object({
      type: z.literal("tool_use"),
      id: z.string(),
      name: z.string(),
      input: z.unknown().describe("The arguments as an object."),
    }),
    z.object({
      type: z.literal("tool_result"),
      tool_use_id: z.string().describe("ID of the call this is the result of."),
      content: z.union([z.string(), list(resultBlock)]).nullish(),
      is_error: z.boolean().nullish(),
    }),
  ]),
  historyBlock,
]);
export type Block = z.output<typeof contentBlock>;
