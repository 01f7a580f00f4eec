import { computed, effect, signal as createSignal } from "@preact/signals";
import { z } from "zod";
import { toError } from "../../errors/service-error.ts";
import { storedList } from "../browser.ts";

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

/** A tool that a model may call. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: object;
  /** True if calls run without the user's consent. */
  readonly isAutomatic: boolean;
  /** Absent if the user enters the result. */
  readonly run?: (args: unknown, signal: AbortSignal) => Promise<string>;
}

const parametersSchema = z.record(z.string(), z.unknown());

/** Returns the enabled tools. A tool of the user replaces one of an MCP server with the same name. */
function enabledTools(): readonly Tool[] {
  const userDefined = userTools.value.filter(({ isOn }) => isOn).map(toTool);
  const all = new Map([...mcpTools.value, ...userDefined].map((tool) => [tool.name, tool]));
  return [...all.values()];
}

export function findTool(name: string): Tool | undefined {
  return enabledTools().find((tool) => tool.name === name);
}

/** Returns the enabled tools in the format of requests. */
export function offeredTools(): Pick<Tool, "name" | "description" | "parameters">[] {
  return enabledTools().map(({ name, description, parameters }) => ({ name, description, parameters }));
}

/**
 * Runs a tool call and returns its result. Errors are returned as text, so that the model can correct its arguments.
 */
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
  if (code.trim() === "") return { ...common, isAutomatic: false };
  return {
    ...common,
    isAutomatic: true,
    run: async (args, signal) => await runInSandbox(code, args, signal),
  };
}

export interface ToolConnection {
  /** @param isAutomatic true if calls need no consent */
  tools(isAutomatic: boolean): readonly Tool[];
  close(): void;
}

interface ServerState {
  /** Status text for the user. */
  readonly status: string;
  readonly connection?: ToolConnection;
}

/** States of the enabled servers, by URL. */
export const serverStates = createSignal<ReadonlyMap<string, ServerState>>(new Map());

const mcpTools = computed<readonly Tool[]>(() =>
  mcpServers.value.flatMap(({ url, isOn, asksFirst }) =>
    isOn ? (serverStates.value.get(url)?.connection?.tools(!asksFirst) ?? []) : [],
  ),
);

effect(() => {
  const enabled = new Map(mcpServers.value.filter(({ isOn }) => isOn).map((server) => [server.url, server]));
  const states = serverStates.peek();
  for (const [url, { connection }] of states) {
    if (enabled.has(url)) continue;
    connection?.close();
    setState(url, undefined);
  }
  for (const [url, server] of enabled) if (!states.has(url)) void connect(server);
});

/** Connects to a server, or reconnects. */
export async function connect(server: McpServer): Promise<void> {
  const { url } = server;
  serverStates.peek().get(url)?.connection?.close();
  setState(url, { status: "Connecting …" });
  try {
    // The client library is large and rarely needed.
    const { openMcpConnection } = await import("./mcp-connection.ts");
    const connection = await openMcpConnection(server, (error) => {
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

/** Maximum run time of a tool. */
const TIMEOUT_MS = 30_000;

/** Maximum length of a result: more would fill any context. */
const MAX_RESULT_CHARACTERS = 100_000;

const messageSchema = z.union([z.object({ result: z.string() }), z.object({ error: z.string() })]);

/**
 * Runs the body of an async function of `args` in a worker inside a sandboxed frame, without network and without access
 * to this page.
 * @returns the function's result: text unchanged, other values as JSON
 * @throws Error if the function throws, takes too long or is stopped
 */
async function runInSandbox(code: string, args: unknown, signal: AbortSignal): Promise<string> {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.hidden = true;
  frame.title = "A tool";
  // `srcdoc` instead of `src`: a sandboxed frame bypasses the service worker, which has the document without a server.
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
    else resolve(message.result.slice(0, MAX_RESULT_CHARACTERS));
  };
  addEventListener("message", onMessage);
  const seconds = TIMEOUT_MS / 1000;
  const timer = setTimeout(() => reject(new Error(`The tool took longer than ${seconds} s.`)), TIMEOUT_MS);
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
    // Removing the frame ends its worker.
    frame.remove();
  }
}

async function readFrame(): Promise<string> {
  const answer = await fetch(new URL("tool-frame.html", document.baseURI)).catch(() => undefined);
  if (!answer?.ok) throw new Error("The frame in which tools run cannot be loaded. Load the page again.");
  return await answer.text();
}
