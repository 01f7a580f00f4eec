import { effect, signal as value } from "@preact/signals";
import { z } from "zod";

const toolSchema = z.object({
  name: z.string(),
  description: z.string(),
  /** JSON Schema of its arguments, as text. */
  parameters: z.string(),
  /** The body of an async function of `args`; empty: a person answers. */
  code: z.string(),
  isOn: z.boolean(),
});
export type UserTool = z.output<typeof toolSchema>;

const serverSchema = z.object({
  url: z.string(),
  /** For the header Authorization: Bearer. */
  token: z.string(),
  /** Ask a person before each call. */
  asksFirst: z.boolean(),
  isOn: z.boolean(),
});
/** An MCP server over streamable HTTP. */
export type McpServer = z.output<typeof serverSchema>;

/** Tools and servers that the user has named; this browser keeps them. */
export const userTools = stored("daybreak-tools", toolSchema);
export const mcpServers = stored("daybreak-mcp-servers", serverSchema);

/** A list that the browser keeps; what it cannot read any longer is left out. */
function stored<Schema extends z.ZodType>(key: string, schema: Schema) {
  const list = value<readonly z.output<Schema>[]>(read(key, schema));
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
