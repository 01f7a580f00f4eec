import { computed, effect, signal as value } from "@preact/signals";
import { z } from "zod";
import { toError } from "../../errors/to-error.ts";
import type { McpConnection } from "./mcp-connection.ts";
import { type McpServer, mcpServers, type UserTool, userTools } from "./tool-store.ts";

/** A tool that a model may call. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly parameters: object;
  /** Neither a person's answer nor consent is needed. */
  readonly runsByItself: boolean;
  /** Absent: a person answers. */
  readonly run?: (args: unknown, signal: AbortSignal) => Promise<string>;
}

const parametersSchema = z.record(z.string(), z.unknown());

/** Tools that are switched on, each name once: those of the user first. */
function tools(): readonly Tool[] {
  const own = userTools.value.filter(({ isOn }) => isOn).map(toTool);
  const all = new Map([...mcpTools.value, ...own].map((tool) => [tool.name, tool]));
  return [...all.values()];
}

export function findTool(name: string): Tool | undefined {
  return tools().find((tool) => tool.name === name);
}

/** The tools as requests offer them. */
export function offeredTools(): Pick<Tool, "name" | "description" | "parameters">[] {
  return tools().map(({ name, description, parameters }) => ({ name, description, parameters }));
}

/** What a call gives; what goes wrong is told to the model, which may mend its arguments. */
export async function runTool(
  call: { readonly name: string; readonly arguments: string },
  signal: AbortSignal,
): Promise<string> {
  const tool = findTool(call.name);
  if (!tool?.run) return `Error: there is no tool named ${call.name}.`;
  try {
    return await tool.run(call.arguments === "" ? {} : JSON.parse(call.arguments), signal);
  } catch (error) {
    return `Error: ${toError(error).message}`;
  }
}

function toTool({ name, description, parameters, code }: UserTool): Tool {
  const common = { name, description, parameters: parametersSchema.parse(JSON.parse(parameters)) };
  if (code.trim() === "") return { ...common, runsByItself: false };
  return {
    ...common,
    runsByItself: true,
    run: async (args, signal) => await runInSandbox(code, args, signal),
  };
}

interface ServerState {
  /** What a person reads beside the server. */
  readonly status: string;
  readonly connection?: McpConnection;
}

/** The servers that are switched on, by address. */
export const serverStates = value<ReadonlyMap<string, ServerState>>(new Map());

/** The tools of all servers that are connected. */
const mcpTools = computed<readonly Tool[]>(() =>
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

/** A tool that runs longer is ended: the model waits for it, and so does a person. */
const LIMIT_MS = 30_000;

/** Of what a tool gives, in characters: more would fill any context. */
const MAX_RESULT = 100_000;

const messageSchema = z.union([z.object({ result: z.string() }), z.object({ error: z.string() })]);

/**
 * Runs the body of an async function of `args` in a worker inside a frame that has no origin, no network, and nothing of
 * this page.
 * @returns what it returns: a text as it is, anything else as JSON
 * @throws Error with what it throws, when it takes too long, or when it is stopped
 */
async function runInSandbox(code: string, args: unknown, signal: AbortSignal): Promise<string> {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.hidden = true;
  frame.title = "A tool";
  // Not its address: browsers load a frame without an origin past the service worker, which has it without a server.
  frame.srcdoc = await readFrame();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const onMessage = ({ source, data }: MessageEvent): void => {
    if (source !== frame.contentWindow) return;
    if (data === "ready") {
      frame.contentWindow?.postMessage({ code, args }, "*");
      return;
    }
    const message = messageSchema.safeParse(data).data ?? { error: "The tool gave no result." };
    if ("error" in message) reject(new Error(message.error));
    else resolve(message.result.slice(0, MAX_RESULT));
  };
  addEventListener("message", onMessage);
  const seconds = LIMIT_MS / 1000;
  const timer = setTimeout(() => reject(new Error(`The tool took longer than ${seconds} s.`)), LIMIT_MS);
  const onAbort = (): void => reject(new Error("The tool was stopped."));
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  document.body.append(frame);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    removeEventListener("message", onMessage);
    // Its worker ends with it.
    frame.remove();
  }
}

async function readFrame(): Promise<string> {
  const answer = await fetch(new URL("tool-frame.html", document.baseURI)).catch(() => undefined);
  if (!answer?.ok) throw new Error("The frame in which tools run cannot be loaded. Load the page again.");
  return await answer.text();
}
