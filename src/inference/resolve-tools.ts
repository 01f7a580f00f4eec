import type { GenerationInput, JsonSchema, OutputFormat, Sampling } from "../engine/protocol/generation.ts";
import type { Model, ToolFormat } from "../models/model.ts";
import { forcedCallSchema, offeredCallSchema } from "./forced-call/forced-call-schema.ts";
import { renderTools } from "./tool-format/render-tools.ts";

type ChatInput = Extract<GenerationInput, { kind: "chat" }>;

/** How tool calls stand in the text; undefined when the engine reports them itself. */
export type WrittenCalls =
  | { readonly kind: "forced" }
  /** In the same form, where the answer may have a form of its own instead. */
  | { readonly kind: "offered"; readonly names: readonly string[] }
  | { readonly kind: "tagged"; readonly format: ToolFormat; readonly parallel: boolean }
  /** Reported by the engine, whose turn ends with the first. */
  | { readonly kind: "single" }
  | undefined;

export interface ResolvedTools {
  readonly input: ChatInput;
  readonly format: OutputFormat;
  readonly calls: WrittenCalls;
  /** Tokens with which the model would begin a call that it must not make. */
  readonly bias: NonNullable<Sampling["logitBias"]>;
  /** Text at which the turn ends: of calls in tags only the first may be made, so its end tag is the end. */
  readonly stop: readonly string[];
}

/** The least bias there is: such a token is never chosen. */
const NEVER = -100;

/**
 * A call that must be made is asked for as JSON by schema, which binds any model, in whatever form it would call by
 * itself; the engine still shows it the tools. That leaves no room for another format of the answer; where a call may
 * be made and the answer has a format, the schema has room for either. Where no call may be made the model is shown no
 * tools, and may not write the tokens with which a call begins.
 */
export function resolveTools(
  input: ChatInput,
  format: OutputFormat,
  { settings: { toolFormat }, gguf }: Pick<Model, "settings" | "gguf">,
): ResolvedTools {
  const { tools, toolChoice, parallelToolCalls } = input;
  const shown = toolFormat && usesTools(input) ? withToolsAsText(input, toolFormat) : input;
  if (toolChoice === "none" && tools.length > 0) {
    const bias = gguf.callTokens.map((token) => ({ token, bias: NEVER }));
    return { input: { ...shown, tools: [] }, format, calls: undefined, bias, stop: [] };
  }
  if (toolChoice !== "auto" && toolChoice !== "none") {
    return {
      input: { ...shown, toolChoice: "none" },
      format: { type: "json_schema", schema: forcedCallSchema(tools, toolChoice) },
      calls: { kind: "forced" },
      bias: [],
      stop: [],
    };
  }
  const answer = answerSchema(format);
  if (toolChoice === "auto" && tools.length > 0 && answer) {
    return {
      input: { ...shown, toolChoice: "none" },
      format: { type: "json_schema", schema: offeredCallSchema(tools, answer) },
      calls: { kind: "offered", names: tools.map(({ name }) => name) },
      bias: [],
      stop: [],
    };
  }
  const calls = writtenCalls(input, toolFormat, parallelToolCalls);
  const isTaggedOnce = calls?.kind === "tagged" && !calls.parallel && calls.format.callEnd !== "";
  return { input: shown, format, calls, bias: [], stop: isTaggedOnce ? [calls.format.callEnd] : [] };
}

/** Undefined when the answer need not be JSON. */
function answerSchema(format: OutputFormat): JsonSchema | undefined {
  if (format.type === "json") return { type: "object" };
  return format.type === "json_schema" ? format.schema : undefined;
}

function writtenCalls(input: ChatInput, toolFormat: ToolFormat | undefined, parallel: boolean): WrittenCalls {
  if (toolFormat && usesTools(input)) return { kind: "tagged", format: toolFormat, parallel };
  return parallel ? undefined : { kind: "single" };
}

function usesTools(input: ChatInput): boolean {
  return (
    input.tools.length > 0 ||
    input.messages.some(({ role, toolCalls }) => role === "tool" || toolCalls !== undefined)
  );
}

function withToolsAsText(input: ChatInput, format: ToolFormat): ChatInput {
  return {
    ...input,
    messages: renderTools(input.messages, input.tools, input.toolChoice, format),
    tools: [],
    toolChoice: "none",
  };
}
