import type {
  GenerationInput,
  JsonSchema,
  OutputFormat,
  Sampling,
  ToolDefinition,
} from "../../engine/protocol/generation.ts";
import type { Model, ToolFormat } from "../../models/model.ts";
import { traitsOf } from "../chat-template.ts";
import type { CallFormat } from "./written-call-parser.ts";
import { renderTools } from "./tool-prompt.ts";

type ChatInput = Extract<GenerationInput, { kind: "chat" }>;

/** How tool calls are written in the text; undefined if the engine reports them itself. */
export type WrittenCalls =
  | { readonly kind: "forced" }
  /** The same, but the answer may have its own format instead. */
  | { readonly kind: "offered"; readonly names: readonly string[] }
  | { readonly kind: "tagged"; readonly format: ToolFormat; readonly parallel: boolean }
  /** As the template of the model's family has it. */
  | {
      readonly kind: "written";
      readonly format: CallFormat;
      readonly names: readonly string[];
      readonly parallel: boolean;
    }
  /** Reported by the engine; the turn ends with the first. */
  | { readonly kind: "single" }
  | undefined;

/** What the answer must be: of a format, or one call of a tool, or either. */
export type AnswerForm =
  | OutputFormat
  | {
      readonly type: "calls";
      readonly tools: readonly ToolDefinition[];
      readonly answer?: JsonSchema;
      /** The field of the request that has the answer's schema. */
      readonly param?: string | undefined;
    };

export interface ResolvedTools {
  readonly input: ChatInput;
  readonly form: AnswerForm;
  readonly calls: WrittenCalls;
  /** Tools that the model may call in its own format. */
  readonly chosen: readonly ToolDefinition[];
  /** Tokens that begin tool calls, if none are allowed. */
  readonly bias: NonNullable<Sampling["logitBias"]>;
  /** Stop sequence: if only one call in tags is allowed, its end tag. */
  readonly stop: readonly string[];
}

/** The lowest bias: such a token is never chosen. */
const NEVER = -100;

/**
 * A required call is enforced as JSON by schema, which works for any model, whatever format its own calls have; the engine
 * still shows it the tools. This excludes another format for the answer; if a call is optional and the answer has a
 * format, the schema allows either. If calls are not allowed, the model does not see the tools, and cannot write the
 * tokens that begin a call.
 */
export function resolveTools(
  input: ChatInput,
  format: OutputFormat,
  { settings: { toolFormat, template }, gguf }: Pick<Model, "settings" | "gguf">,
): ResolvedTools {
  const { tools, toolChoice, parallelToolCalls } = input;
  const shown = toolFormat && usesTools(input) ? withToolsAsText(input, toolFormat) : input;
  if (toolChoice === "none" && tools.length > 0) {
    const bias = gguf.callTokens.map((token) => ({ token, bias: NEVER }));
    return { input: { ...shown, tools: [] }, form: format, calls: undefined, chosen: [], bias, stop: [] };
  }
  if (toolChoice !== "auto" && toolChoice !== "none") {
    const allowed = toolChoice === "required" ? tools : tools.filter(({ name }) => name === toolChoice.name);
    return {
      input: { ...shown, toolChoice: "none" },
      form: { type: "calls", tools: allowed },
      calls: { kind: "forced" },
      chosen: [],
      bias: [],
      stop: [],
    };
  }
  const answer = answerSchema(format);
  if (toolChoice === "auto" && tools.length > 0 && answer) {
    return {
      input: { ...shown, toolChoice: "none" },
      form: { type: "calls", tools, answer, param: format.type === "json_schema" ? format.param : undefined },
      calls: { kind: "offered", names: tools.map(({ name }) => name) },
      chosen: [],
      bias: [],
      stop: [],
    };
  }
  const written = traitsOf(template ?? gguf.chatTemplate).calls;
  if (!toolFormat && written && tools.length > 0) {
    const names = tools.map(({ name }) => name);
    return {
      // The engine shows the model the tools, and leaves its answer as it is.
      input: { ...input, toolChoice: "none" },
      form: format,
      chosen: tools,
      calls: { kind: "written", format: written, names, parallel: parallelToolCalls },
      bias: [],
      stop: [],
    };
  }
  const calls = writtenCalls(input, toolFormat, parallelToolCalls);
  const isTaggedOnce = calls?.kind === "tagged" && !calls.parallel && calls.format.callEnd !== "";
  const stop = isTaggedOnce ? [calls.format.callEnd] : [];
  return { input: shown, form: format, calls, chosen: tools, bias: [], stop };
}

/** Undefined if the answer need not be JSON. */
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
