import type { GenerationInput, OutputFormat, Sampling } from "../engine/protocol/generation.ts";
import type { Model, ToolFormat } from "../models/model.ts";
import { forcedCallSchema } from "./forced-call/forced-call-schema.ts";
import { renderTools } from "./tool-format/render-tools.ts";

type ChatInput = Extract<GenerationInput, { kind: "chat" }>;

/** How tool calls stand in the text; undefined when the engine reports them itself. */
export type WrittenCalls =
  | { readonly kind: "forced" }
  | { readonly kind: "tagged"; readonly format: ToolFormat; readonly parallel: boolean }
  /** Reported by the engine, of which only the first counts. */
  | { readonly kind: "single" }
  | undefined;

export interface ResolvedTools {
  readonly input: ChatInput;
  readonly format: OutputFormat;
  readonly calls: WrittenCalls;
  /** Tokens with which the model would begin a call that it must not make. */
  readonly bias: NonNullable<Sampling["logitBias"]>;
}

/** The least bias there is: such a token is never chosen. */
const NEVER = -100;

/**
 * A call that must be made is asked for as JSON by schema, which binds any model, in whatever form it would call by
 * itself; the engine still shows it the tools. That leaves no room for another format of the answer. Where no call may
 * be made the model is shown no tools, and may not write the tokens with which a call begins.
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
    return { input: { ...shown, tools: [] }, format, calls: undefined, bias };
  }
  if (toolChoice !== "auto" && toolChoice !== "none") {
    return {
      input: { ...shown, toolChoice: "none" },
      format: { type: "json_schema", schema: forcedCallSchema(tools, toolChoice) },
      calls: { kind: "forced" },
      bias: [],
    };
  }
  return { input: shown, format, calls: writtenCalls(input, toolFormat, parallelToolCalls), bias: [] };
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
