import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { z } from "zod";
import type { McpServer, Tool, ToolConnection } from "./tools.ts";

const argumentsSchema = z.record(z.string(), z.unknown());

/**
 * Connects to an MCP server over streamable HTTP.
 * @param onLost called if the connection fails later
 * @throws Error if the server is unreachable or rejects this page (CORS)
 */
export async function openMcpConnection(
  { url, token }: McpServer,
  onLost: (error: Error) => void,
): Promise<ToolConnection> {
  const client = new Client({ name: "daybreak", version: "1" });
  const headers = token === "" ? {} : { authorization: `Bearer ${token}` };
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  try {
    await client.connect(transport);
  } catch (error) {
    throw error instanceof TypeError
      ? new Error("it cannot be reached, or does not allow pages of this address (CORS).", { cause: error })
      : error;
  }
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it has no events, only this property
  client.onerror = onLost;
  const { tools } = await client.listTools();
  return {
    tools: (isAutomatic) =>
      tools.map(({ name, description = "", inputSchema: parameters }) => {
        const run: Tool["run"] = async (args, signal) => await callTool(client, name, args, signal);
        return { name, description, parameters, isAutomatic, run };
      }),
    close: () => void client.close(),
  };
}

/** Calls a tool and returns its text. Parts of other types, such as images, are replaced by their type. */
async function callTool(client: Client, name: string, args: unknown, signal: AbortSignal): Promise<string> {
  const request = { name, arguments: argumentsSchema.parse(args) };
  const { content, isError, structuredContent } = await client.callTool(request, { signal });
  const parts = content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`));
  const text = parts.length > 0 ? parts.join("\n") : JSON.stringify(structuredContent ?? null);
  return isError === true ? `Error: ${text}` : text;
}
