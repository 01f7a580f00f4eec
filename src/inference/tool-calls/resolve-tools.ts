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

/** How tool calls are parsed from the text; undefined if the engine parses them. */
export type WrittenCalls =
  | { readonly kind: "forced" }
  /** As forced, but the answer may have its own format instead. */
  | { readonly kind: "offered"; readonly names: readonly string[] }
  | { readonly kind: "tagged"; readonly format: ToolFormat; readonly parallel: boolean }
  /** In the format of the template's family. */
  | {
      readonly kind: "written";
      readonly format: CallFormat;
      readonly names: readonly string[];
      readonly parallel: boolean;
    }
  /** Parsed by the engine; the answer ends with the first call. */
  | { readonly kind: "single" }
  | undefined;

/** Form of the answer: a format, one call of a tool, or either. */
export type AnswerForm =
  | OutputFormat
  | {
      readonly type: "calls";
      readonly tools: readonly ToolDefinition[];
      readonly answer?: JsonSchema;
      /** Request field with the answer's schema. */
      readonly param?: string | undefined;
    };

export interface ResolvedTools {
  readonly input: ChatInput;
  readonly form: AnswerForm;
  readonly calls: WrittenCalls;
  /** Tools that the model may call in its own format. */
  readonly nativeTools: readonly ToolDefinition[];
  /** Bias against the tokens that begin tool calls, if none are allowed. */
  readonly bias: NonNullable<Sampling["logitBias"]>;
  /** End tag of a call as a stop sequence, if only one call in tags is allowed. */
  readonly stop: readonly string[];
}

/** The lowest bias: such a token is never chosen. */
const NEVER = -100;

/**
 * Resolves how tools are shown to the model and how calls are enforced and parsed. A required call is enforced as JSON
 * by a schema, which works for any model; the engine still renders the tools. This replaces the format of the answer;
 * if a call is optional and the answer has a schema, the grammar allows either. If calls are not allowed, the tools are
 * not rendered, and a bias excludes the tokens that begin a call.
 */
export function resolveTools(
  input: ChatInput,
  format: OutputFormat,
  { settings: { toolFormat, template }, gguf }: Pick<Model, "settings" | "gguf">,
): ResolvedTools {
  const { tools, toolChoice, parallelToolCalls } = input;
  const rendered = toolFormat && usesTools(input) ? withToolsAsText(input, toolFormat) : input;
  if (toolChoice === "none" && tools.length > 0) {
    const bias = gguf.toolCallTokens.map((token) => ({ token, bias: NEVER }));
    return {
      input: { ...rendered, tools: [] },
      form: format,
      calls: undefined,
      nativeTools: [],
      bias,
      stop: [],
    };
  }
  if (toolChoice !== "auto" && toolChoice !== "none") {
    const allowed = toolChoice === "required" ? tools : tools.filter(({ name }) => name === toolChoice.name);
    return {
      input: { ...rendered, toolChoice: "none" },
      form: { type: "calls", tools: allowed },
      calls: { kind: "forced" },
      nativeTools: [],
      bias: [],
      stop: [],
    };
  }
  const answer = answerSchema(format);
  if (toolChoice === "auto" && tools.length > 0 && answer) {
    return {
      input: { ...rendered, toolChoice: "none" },
      form: { type: "calls", tools, answer, param: format.type === "json_schema" ? format.param : undefined },
      calls: { kind: "offered", names: tools.map(({ name }) => name) },
      nativeTools: [],
      bias: [],
      stop: [],
    };
  }
  const written = traitsOf(template ?? gguf.chatTemplate).calls;
  if (!toolFormat && written && tools.length > 0) {
    const names = tools.map(({ name }) => name);
    return {
      // The engine renders the tools, but does not parse the answer.
      input: { ...input, toolChoice: "none" },
      form: format,
      nativeTools: tools,
      calls: { kind: "written", format: written, names, parallel: parallelToolCalls },
      bias: [],
      stop: [],
    };
  }
  const calls = writtenCalls(input, toolFormat, parallelToolCalls);
  const isTaggedOnce = calls?.kind === "tagged" && !calls.parallel && calls.format.callEnd !== "";
  const stop = isTaggedOnce ? [calls.format.callEnd] : [];
  return { input: rendered, form: format, calls, nativeTools: tools, bias: [], stop };
}

/** Returns the schema of the answer; undefined if it need not be JSON. */
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
