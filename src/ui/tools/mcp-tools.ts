import { computed, effect, signal as value } from "@preact/signals";
import { toError } from "../../errors/to-error.ts";
import type { McpConnection } from "./mcp-connection.ts";
import { mcpServers, type McpServer } from "./tool-store.ts";
import type { Tool } from "./tools.ts";

interface ServerState {
  /** What a person reads beside the server. */
  readonly status: string;
  readonly connection?: McpConnection;
}

/** The servers that are switched on, by address. */
export const serverStates = value<ReadonlyMap<string, ServerState>>(new Map());

/** The tools of all servers that are connected. */
export const mcpTools = computed<readonly Tool[]>(() =>
  mcpServers.value.flatMap(({ url, isOn, asksFirst }) =>
    isOn ? (serverStates.value.get(url)?.connection?.tools(!asksFirst) ?? []) : [],
  ),
);

effect(() => {
  const wanted = new Map(mcpServers.value.filter(({ isOn }) => isOn).map((server) => [server.url, server]));
  const states = serverStates.peek();
  for (const [url, { connection }] of states) {
    if (wanted.has(url)) continue;
    connection?.close();
    setState(url, undefined);
  }
  for (const [url, server] of wanted) if (!states.has(url)) void connect(server);
});

/** Connects again, such as after the server has been started. */
export async function connect(server: McpServer): Promise<void> {
  const { url } = server;
  serverStates.peek().get(url)?.connection?.close();
  setState(url, { status: "Connecting …" });
  try {
    // The client is large, and few people need it.
    const { McpConnection } = await import("./mcp-connection.ts");
    const connection = await McpConnection.open(server, (error) => {
      if (serverStates.peek().get(url)?.connection === connection) setState(url, { status: error.message });
    });
    const names = connection.tools(false).map(({ name }) => name);
    setState(url, { status: `Connected: ${names.join(", ") || "it has no tools"}`, connection });
  } catch (error) {
    setState(url, { status: `Cannot connect: ${toError(error).message}` });
  }
}

function setState(url: string, state: ServerState | undefined): void {
  const states = new Map(serverStates.peek());
  if (state) states.set(url, state);
  else states.delete(url);
  serverStates.value = states;
}
