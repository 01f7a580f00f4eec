import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { z } from "zod";
import type { McpServer } from "./tool-store.ts";
import type { Tool } from "./tools.ts";

const argumentsSchema = z.record(z.string(), z.unknown());

/** A server that speaks the Model Context Protocol over streamable HTTP. */
export class McpConnection {
  readonly #client: Client;
  readonly #tools: readonly Omit<Tool, "runsByItself">[];

  private constructor(client: Client, tools: readonly Omit<Tool, "runsByItself">[]) {
    this.#client = client;
    this.#tools = tools;
  }

  /**
   * @param onLost called when the connection fails later
   * @throws Error when the server cannot be reached, or does not let this page ask it (CORS)
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
        run: async (args, signal) => await call(client, name, args, signal),
      })),
    );
  }

  /** @param runsByItself whether calls need no consent */
  tools(runsByItself: boolean): readonly Tool[] {
    return this.#tools.map((tool) => ({ ...tool, runsByItself }));
  }

  close(): void {
    void this.#client.close();
  }
}

/** Images and other parts that are not text are named, so that the model knows of them. */
async function call(client: Client, name: string, args: unknown, signal: AbortSignal): Promise<string> {
  const wanted = { name, arguments: argumentsSchema.parse(args) };
  const { content, isError, structuredContent } = await client.callTool(wanted, { signal });
  const parts = content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`));
  const text = parts.length > 0 ? parts.join("\n") : JSON.stringify(structuredContent ?? null);
  return isError === true ? `Error: ${text}` : text;
}
