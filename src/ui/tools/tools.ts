import { z } from "zod";
import { toError } from "../../errors/to-error.ts";
import { mcpTools } from "./mcp-tools.ts";
import { runInSandbox } from "./sandbox.ts";
import { userTools, type UserTool } from "./tool-store.ts";

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
