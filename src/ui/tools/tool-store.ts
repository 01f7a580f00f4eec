import { effect, signal } from "@preact/signals";
import { z } from "zod";

const toolSchema = z.object({
  name: z.string(),
  description: z.string(),
  /** JSON Schema of the arguments, as text. */
  parameters: z.string(),
  /** Body of an async function of `args`; empty if the user enters results. */
  code: z.string(),
  isOn: z.boolean(),
});
export type UserTool = z.output<typeof toolSchema>;

const serverSchema = z.object({
  url: z.string(),
  /** Bearer token of the server. */
  token: z.string(),
  /** True to ask the user before each call. */
  asksFirst: z.boolean(),
  isOn: z.boolean(),
});
/** An MCP server over streamable HTTP. */
export type McpServer = z.output<typeof serverSchema>;

/** The user's tools and MCP servers, in localStorage. */
export const userTools = storedList("daybreak-tools", toolSchema);
export const mcpServers = storedList("daybreak-mcp-servers", serverSchema);

/** Returns a list that is saved in localStorage. An invalid stored value is replaced by an empty list. */
function storedList<Schema extends z.ZodType>(key: string, schema: Schema) {
  const list = signal<readonly z.output<Schema>[]>(read(key, schema));
  effect(() => localStorage.setItem(key, JSON.stringify(list.value)));
  return list;
}

function read<Schema extends z.ZodType>(key: string, schema: Schema): z.output<Schema>[] {
  try {
    return z.array(schema).parse(JSON.parse(localStorage.getItem(key) ?? "[]"));
  } catch {
    return [];
  }
}
