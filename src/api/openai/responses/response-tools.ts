import { z } from "zod";
import { list } from "../../../http/input/bounded-lists.ts";
import {
  type JsonSchema,
  type ToolChoice,
  type ToolDefinition,
} from "../../../engine/protocol/generation.ts";
import type { ToolGrammar } from "../../../inference/inference.ts";
import { customFormatSchema, customFunctions } from "../custom-tools.ts";
import { toolDefinition } from "../../chat-input.ts";
import { functionSchema, strictField } from "../../wire/generation-fields.ts";

const functionTool = z.object({
  type: z.literal("function"),
  ...functionSchema.shape,
  strict: strictField,
});

const customTool = z.object({
  type: z.literal("custom"),
  name: z.string().min(1),
  description: z.string().nullish(),
  format: customFormatSchema.nullish(),
});

/** Built-in tools of OpenAI's API that the client runs. */
const shellTool = z.object({
  type: z.literal("shell"),
  environment: z.object({ type: z.literal("local") }).nullish(),
});
const localShellTool = z.object({ type: z.literal("local_shell") });
const applyPatchTool = z.object({ type: z.literal("apply_patch") });

/** Client-side tool. */
export const clientToolSchema = z.discriminatedUnion("type", [
  functionTool,
  customTool,
  shellTool,
  localShellTool,
  applyPatchTool,
]);
export type ClientTool = z.output<typeof clientToolSchema>;
export type BuiltInTool = Exclude<ClientTool["type"], "function" | "custom">;

/** Hosted tool of OpenAI. Ignored, because coding agents send such tools but work without them. */
const otherToolSchema = z
  .object({
    type: z
      .string()
      .refine((type) => !["function", "custom", "local_shell", "apply_patch"].includes(type), { abort: true })
      .describe("Ignored: the daemon runs no tools. The response lists the supported tools."),
  })
  .transform(({ type }) => ({ type: "other" as const, leftOut: type }));

export const toolSchema = z.union([clientToolSchema, otherToolSchema]);
type Tool = z.output<typeof toolSchema>;

export const toolChoiceSchema = z.union([
  z.enum(["auto", "none", "required"]),
  z.object({ type: z.enum(["function", "custom"]), name: z.string() }),
  z.object({ type: z.enum(["shell", "apply_patch"]) }),
  z.object({
    type: z.literal("allowed_tools"),
    mode: z.enum(["auto", "required"]),
    tools: list(z.object({ type: z.string(), name: z.string().optional() })),
  }),
]);
type Choice = z.output<typeof toolChoiceSchema>;

const text = (description: string): JsonSchema => ({ type: "string", description });
const milliseconds: JsonSchema = { type: "integer", description: "When to give up, in milliseconds." };

/** Functions that represent built-in tools, whose schemas only OpenAI's models know. */
const BUILT_IN: Readonly<
  Record<BuiltInTool, { description: string; properties: JsonSchema; required: readonly string[] }>
> = {
  shell: {
    description: "Runs shell commands on the user's computer, and returns their output.",
    properties: {
      commands: { type: "array", items: { type: "string" }, minItems: 1, description: "The commands." },
      timeout_ms: milliseconds,
      max_output_length: { type: "integer", description: "Most characters of output to return." },
    },
    required: ["commands"],
  },
  local_shell: {
    description: "Runs a program on the user's computer, and returns its output.",
    properties: {
      command: {
        type: "array",
        items: { type: "string" },
        minItems: 1,
        description: "The program and its arguments.",
      },
      working_directory: text("The folder to run it in."),
      timeout_ms: milliseconds,
    },
    required: ["command"],
  },
  apply_patch: {
    description:
      "Creates, changes or deletes a file. A diff has lines that begin with +, - or a space; @@ begins each part of it.",
    properties: {
      type: { enum: ["create_file", "update_file", "delete_file"] },
      path: text("The file."),
      diff: text("For create_file and update_file: the lines. For delete_file: empty."),
    },
    required: ["type", "path", "diff"],
  },
};

/** Returns the client-side tools, without built-in tools whose name another tool has. */
export function clientTools(tools: readonly Tool[] | null | undefined): ClientTool[] {
  const all = (tools ?? []).filter((tool) => tool.type !== "other");
  const taken = new Set(all.flatMap((tool) => ("name" in tool ? tool.name : [])));
  return all.filter((tool) => "name" in tool || !taken.has(tool.type));
}

/** Maximum lengths of a client's texts in a warning. */
const MAX_WARNING_TYPES = 8;
const MAX_TYPE_LENGTH = 40;

/** Returns a warning about ignored tools. */
export function omittedToolWarnings(tools: readonly Tool[] | null | undefined): string[] {
  const types = new Set((tools ?? []).flatMap((tool) => (tool.type === "other" ? tool.leftOut : [])));
  const names = [...types].slice(0, MAX_WARNING_TYPES).map((type) => type.slice(0, MAX_TYPE_LENGTH));
  return names.length > 0
    ? [`Tools that run on a server are not supported and were ignored: ${names.join(", ")}.`]
    : [];
}

function nameOf(tool: { readonly type: string; readonly name?: string | undefined }): string {
  return tool.name ?? tool.type;
}

/** Returns the type of each tool by name. */
export function toolKinds(tools: readonly ClientTool[]): ReadonlyMap<string, ClientTool["type"]> {
  return new Map(tools.map((tool) => [nameOf(tool), tool.type]));
}

interface ToolContext {
  /** Returns the request field with a tool's parameters. */
  readonly paramOf: (tool: ClientTool) => string | undefined;
  /** Receives the grammars of custom tools. */
  readonly grammars: ToolGrammar[];
}

/** Returns functions that represent the client's tools, and which of them may or must be called. */
export function toFunctions(
  tools: readonly ClientTool[],
  choice: Choice,
  { paramOf, grammars }: ToolContext,
): { tools: ToolDefinition[]; toolChoice: ToolChoice } {
  const toFunction = customFunctions(grammars);
  // Grammars refer to their tools, which are therefore not copied.
  const definitions = tools.map((tool) =>
    Object.assign(toDefinition(tool, toFunction), { param: paramOf(tool) }),
  );
  if (typeof choice === "string") return { tools: definitions, toolChoice: choice };
  if (choice.type !== "allowed_tools") return { tools: definitions, toolChoice: { name: nameOf(choice) } };
  const allowed = new Set(choice.tools.map(nameOf));
  return { tools: definitions.filter(({ name }) => allowed.has(name)), toolChoice: choice.mode };
}

function toDefinition(tool: ClientTool, toFunction: ReturnType<typeof customFunctions>): ToolDefinition {
  if (tool.type === "function") return toolDefinition(tool);
  if (tool.type === "custom") {
    const { format, ...custom } = tool;
    return toFunction({ ...custom, grammar: format?.type === "grammar" ? format : undefined });
  }
  const { description, ...schema } = BUILT_IN[tool.type];
  return {
    name: tool.type,
    description,
    parameters: { type: "object", ...schema, additionalProperties: false },
  };
}
