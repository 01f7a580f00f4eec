import type { ModelSettings, ToolFormat } from "../model.ts";
import { modelfileError, type Instruction, readBoolean } from "./parse-instructions.ts";

/** The tags that nearly all reasoning models use. */
const THINK_TAGS = { start: "<think>", end: "</think>" };

const THINKING_KEYS = ["start", "end", "enabled"] as const;
const TOOL_FORMAT_KEYS = ["style", "call_start", "call_end", "result_start", "result_end"] as const;

/** The marks of model families, from their own chat templates. */
const STYLES: Readonly<Record<string, Omit<ToolFormat, "style">>> = {
  hermes: marks("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
  qwen: marks("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
  mistral: marks("[TOOL_CALLS]", "", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
};

/** THINKING: the tags around reasoning, and whether requests think by default. */
export function readThinking(instructions: readonly Instruction[]): ModelSettings["thinking"] {
  const last = instructions.at(-1);
  if (!last) return undefined;
  const { start, end, enabled } = byKey("THINKING", THINKING_KEYS, instructions);
  if ((start === undefined) !== (end === undefined)) {
    throw modelfileError(last.line, "THINKING needs both start and end, or neither.");
  }
  for (const mark of [start, end]) {
    if (mark?.text === "") throw modelfileError(mark.line, `THINKING ${mark.key} must not be empty.`);
  }
  return {
    start: start?.text ?? THINK_TAGS.start,
    end: end?.text ?? THINK_TAGS.end,
    enabled: enabled ? readBoolean(enabled.line, "THINKING enabled", enabled.text) : true,
  };
}

/** TOOLFORMAT: the marks of a known style, or custom ones. */
export function readToolFormat(instructions: readonly Instruction[]): ToolFormat | undefined {
  const last = instructions.at(-1);
  if (!last) return undefined;
  const given = byKey("TOOLFORMAT", TOOL_FORMAT_KEYS, instructions);
  const style = given.style?.text.toLowerCase() ?? "custom";
  const known = Object.hasOwn(STYLES, style) ? STYLES[style] : undefined;
  const callStart = given.call_start?.text ?? known?.callStart;
  const callEnd = given.call_end?.text ?? known?.callEnd;
  const resultStart = given.result_start?.text ?? known?.resultStart;
  const resultEnd = given.result_end?.text ?? known?.resultEnd;
  // Without an opening mark, calls and results could not be distinguished from other text.
  if (!callStart || callEnd === undefined || !resultStart || resultEnd === undefined) {
    throw modelfileError(
      last.line,
      `TOOLFORMAT needs call_start, call_end, result_start and result_end, or a style of ${Object.keys(STYLES).join(", ")}.`,
    );
  }
  return { style, callStart, callEnd, resultStart, resultEnd };
}

function marks(
  callStart: string,
  callEnd: string,
  resultStart: string,
  resultEnd: string,
): Omit<ToolFormat, "style"> {
  return { callStart, callEnd, resultStart, resultEnd };
}

function byKey<Key extends string>(
  directive: string,
  keys: readonly Key[],
  instructions: readonly Instruction[],
): { readonly [K in Key]?: Instruction } {
  const found: { [K in Key]?: Instruction } = {};
  for (const instruction of instructions) {
    const key = keys.find((candidate) => candidate === instruction.key);
    if (key === undefined) {
      const shown = JSON.stringify(instruction.key.slice(0, 40));
      throw modelfileError(
        instruction.line,
        `${directive} does not know ${shown}; it knows ${keys.join(", ")}.`,
      );
    }
    found[key] = instruction;
  }
  return found;
}
