import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { z } from "zod";
import type { McpServer, Tool } from "./tools.ts";

const argumentsSchema = z.record(z.string(), z.unknown());

/** Connection to an MCP server over streamable HTTP. */
export class McpConnection {
  readonly #client: Client;
  readonly #tools: readonly Omit<Tool, "isAutomatic">[];

  private constructor(client: Client, tools: readonly Omit<Tool, "isAutomatic">[]) {
    this.#client = client;
    this.#tools = tools;
  }

  /**
   * @param onLost called if the connection fails later
   * @throws Error if the server is unreachable or rejects this page (CORS)
   */
  static async open({ url, token }: McpServer, onLost: (error: Error) => void): Promise<McpConnection> {
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
    return new McpConnection(
      client,
      tools.map(({ name, description = "", inputSchema }) => ({
        name,
        description,
        parameters: inputSchema,
        run: async (args, signal) => await callTool(client, name, args, signal),
      })),
    );
  }

  /** @param isAutomatic true if calls need no consent */
  tools(isAutomatic: boolean): readonly Tool[] {
    return this.#tools.map((tool) => ({ ...tool, isAutomatic }));
  }

  close(): void {
    void this.#client.close();
  }
}

/** Calls a tool and returns its text. Parts of other types, such as images, are replaced by their type. */
async function callTool(client: Client, name: string, args: unknown, signal: AbortSignal): Promise<string> {
  const request = { name, arguments: argumentsSchema.parse(args) };
  const { content, isError, structuredContent } = await client.callTool(request, { signal });
  const parts = content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`));
  const text = parts.length > 0 ? parts.join("\n") : JSON.stringify(structuredContent ?? null);
  return isError === true ? `Error: ${text}` : text;
}
