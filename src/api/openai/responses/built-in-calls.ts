import { z } from "zod";
import type { ToolCall } from "../../../engine/protocol/generation.ts";
import { newId } from "../../answer-fields.ts";
import { tryJson } from "../../../json/json-values.ts";
import type { BuiltInTool } from "./response-tools.ts";

const callFields = { id: z.string(), call_id: z.string() };
const status = z.enum(["in_progress", "completed"]);

const shellAction = z.object({
  commands: z.array(z.string()),
  timeout_ms: z.int().nullable(),
  max_output_length: z.int().nullable(),
});
const localShellAction = z.object({
  type: z.literal("exec"),
  command: z.array(z.string()),
  env: z.record(z.string(), z.string()),
  timeout_ms: z.int().nullable(),
  working_directory: z.string().nullable(),
});
const operation = z.discriminatedUnion("type", [
  z.object({ type: z.literal("create_file"), path: z.string(), diff: z.string() }),
  z.object({ type: z.literal("update_file"), path: z.string(), diff: z.string() }),
  z.object({ type: z.literal("delete_file"), path: z.string() }),
]);

/** Calls of OpenAI's built-in tools that the client runs. */
export const builtInCalls = [
  z.object({
    ...callFields,
    type: z.literal("shell_call"),
    status,
    action: shellAction,
    environment: z.null(),
  }),
  z.object({ ...callFields, type: z.literal("local_shell_call"), status, action: localShellAction }),
  z.object({ ...callFields, type: z.literal("apply_patch_call"), status, operation }),
] as const;
type BuiltInCall = z.output<(typeof builtInCalls)[number]>;

/** Prefixes of call IDs, as in OpenAI's API. */
const ID_PREFIX: Readonly<Record<BuiltInTool, string>> = {
  shell: "sh",
  local_shell: "lsh",
  apply_patch: "apc",
};

const strings = z.array(z.string()).or(z.string().transform((text) => [text]));
const nullableInteger = z.int().nullable().catch(null);
const argumentsOf = {
  shell: z.object({ commands: strings, timeout_ms: nullableInteger, max_output_length: nullableInteger }),
  local_shell: z.object({
    command: strings,
    timeout_ms: nullableInteger,
    working_directory: z.string().nullable().catch(null),
  }),
  apply_patch: operation,
};

/**
 * Converts a function call to the call of the built-in tool that the function represents; undefined if the arguments
 * are truncated or invalid.
 */
export function toBuiltInCall(
  tool: BuiltInTool,
  call: { readonly callId: string; readonly arguments: string },
): BuiltInCall | undefined {
  const value = tryJson(call.arguments);
  const head = { id: newId(ID_PREFIX[tool]), call_id: call.callId, status: "completed" } as const;
  if (tool === "shell") {
    const { data } = argumentsOf.shell.safeParse(value);
    return data && { ...head, type: "shell_call", action: data, environment: null };
  }
  if (tool === "local_shell") {
    const { data } = argumentsOf.local_shell.safeParse(value);
    return data && { ...head, type: "local_shell_call", action: { type: "exec", env: {}, ...data } };
  }
  const { data } = argumentsOf.apply_patch.safeParse(value);
  return data && { ...head, type: "apply_patch_call", operation: data };
}

/** Input items of built-in tool calls, made by this daemon or by another server. */
export const builtInCallItems = [
  z.looseObject({
    type: z.literal("shell_call"),
    call_id: z.string(),
    action: z.looseObject({ commands: z.array(z.string()) }),
  }),
  z.looseObject({
    type: z.literal("local_shell_call"),
    call_id: z.string(),
    action: z.looseObject({ command: z.array(z.string()) }),
  }),
  z.looseObject({
    type: z.literal("apply_patch_call"),
    call_id: z.string(),
    operation: z.looseObject({ type: z.string(), path: z.string(), diff: z.string().nullish() }),
  }),
] as const;

/** Input items of results of built-in tools. */
export const builtInOutputItems = [
  z.looseObject({
    type: z.literal("shell_call_output"),
    call_id: z.string(),
    output: z.array(
      z.looseObject({
        stdout: z.string(),
        stderr: z.string(),
        outcome: z.looseObject({ type: z.string(), exit_code: z.int().nullish() }),
      }),
    ),
  }),
  z.looseObject({
    type: z.literal("local_shell_call_output"),
    id: z.string(),
    call_id: z.string().nullish(),
    output: z.string(),
  }),
  z.looseObject({
    type: z.literal("apply_patch_call_output"),
    call_id: z.string(),
    status: z.string(),
    output: z.string().nullish(),
  }),
] as const;

type CallItem = z.output<(typeof builtInCallItems)[number]>;
type OutputItem = z.output<(typeof builtInOutputItems)[number]>;

/** Converts a built-in tool call to a call of the function that represents the tool. */
export function fromBuiltInCall(item: CallItem): ToolCall {
  const id = item.call_id;
  if (item.type === "shell_call") {
    const { commands, timeout_ms: timeout, max_output_length: length } = item.action;
    return {
      id,
      name: "shell",
      arguments: toJson({ commands, timeout_ms: timeout, max_output_length: length }),
    };
  }
  if (item.type === "local_shell_call") {
    const { command, timeout_ms: timeout, working_directory: folder } = item.action;
    return {
      id,
      name: "local_shell",
      arguments: toJson({ command, timeout_ms: timeout, working_directory: folder }),
    };
  }
  const { type, path, diff } = item.operation;
  return { id, name: "apply_patch", arguments: toJson({ type, path, diff: diff ?? "" }) };
}

function toJson(fields: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(fields, (_, value: unknown) => value ?? undefined);
}

/** Returns the result of a built-in tool as text for the model. */
export function builtInOutput(item: OutputItem): { readonly callId: string; readonly text: string } {
  if (item.type === "local_shell_call_output") return { callId: item.call_id ?? item.id, text: item.output };
  if (item.type === "apply_patch_call_output") {
    return { callId: item.call_id, text: [item.status, ...(item.output ? [item.output] : [])].join(": ") };
  }
  const texts = item.output.map(({ stdout, stderr, outcome }) => {
    const end = outcome.type === "timeout" ? "[timed out]" : `[exit code ${outcome.exit_code ?? "unknown"}]`;
    return [stdout, stderr, end].filter((part) => part !== "").join("\n");
  });
  return { callId: item.call_id, text: texts.join("\n") };
}
