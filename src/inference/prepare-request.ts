import type { OutputFormat, ToolDefinition } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { InferenceRequest, RequestedFormat, ToolGrammar } from "./inference.ts";
import type { CompileGrammar } from "./schema-compiler.ts";

export type PreparedRequest = InferenceRequest & { readonly format: OutputFormat };

/**
 * Compiles the format and the tools' grammars of a request, before any other work for it, so that another machine can serve
 * it.
 * @throws ServiceError invalid_parameter if the format cannot be expressed in GBNF, or llama.cpp could not parse it
 */
export async function prepareRequest(
  request: InferenceRequest,
  compileGrammar: CompileGrammar,
): Promise<PreparedRequest> {
  const format = await cached(preparedFormats, request.format, () =>
    prepareFormat(request.format, compileGrammar),
  );
  const { input, toolGrammars, warnings = [] } = request;
  if (!toolGrammars || input.kind !== "chat") return { ...request, format };
  const compiled = await cached(compiledGrammars, toolGrammars, () =>
    compileAll(toolGrammars, compileGrammar),
  );
  const tools = input.tools.map((tool) => withPattern(tool, compiled.patterns.get(tool)));
  return {
    ...request,
    format,
    input: { ...input, tools },
    toolGrammars: undefined,
    warnings: [...warnings, ...compiled.warnings],
  };
}

/** Caches by object, because the choices of a request share its format and grammars. */
const preparedFormats = new WeakMap<RequestedFormat, Promise<OutputFormat>>();
const compiledGrammars = new WeakMap<readonly ToolGrammar[], Promise<CompiledGrammars>>();

async function cached<Key extends object, Value>(
  cache: WeakMap<Key, Promise<Value>>,
  key: Key,
  make: () => Promise<Value>,
): Promise<Value> {
  const value = cache.get(key) ?? make();
  cache.set(key, value);
  return await value;
}

async function prepareFormat(format: RequestedFormat, compileGrammar: CompileGrammar): Promise<OutputFormat> {
  if (format.type !== "texts") return format;
  const { language, source, param } = format;
  const result = await compileGrammar({ kind: "texts", language, source });
  if (result.kind === "made")
    return { type: "grammar", grammar: result.grammar ?? "", ...(param !== "grammar" && { param }) };
  const problem = result.kind === "unsayable" ? result.message : "it has no grammar";
  throw new ServiceError("invalid_parameter", `${param}: cannot be enforced: ${problem}.`, { param });
}

interface CompiledGrammars {
  readonly patterns: ReadonlyMap<ToolDefinition, { readonly argument: string; readonly pattern: string }>;
  readonly warnings: readonly string[];
}

/** Most characters of all tools' grammars of a request. */
const MAX_GRAMMARS_LENGTH = 32 * 1024;
/** Maximum lengths of a client's texts in a warning. */
const MAX_NAME_LENGTH = 64;
const MAX_REASON_LENGTH = 120;

async function compileAll(
  grammars: readonly ToolGrammar[],
  compileGrammar: CompileGrammar,
): Promise<CompiledGrammars> {
  const patterns = new Map<ToolDefinition, { argument: string; pattern: string }>();
  const warnings: string[] = [];
  let charactersLeft = MAX_GRAMMARS_LENGTH;
  for (const { tool, argument, language, source } of grammars) {
    charactersLeft -= source.length;
    const result =
      charactersLeft < 0
        ? ({ kind: "unsayable", message: "it is too long" } as const)
        : await compileGrammar({ kind: "pattern", language, source });
    if (result.kind === "pattern") patterns.set(tool, { argument, pattern: result.pattern });
    else if (result.kind === "unsayable") {
      const reason = result.message.replace(/^it /, "").slice(0, MAX_REASON_LENGTH);
      warnings.push(
        `The grammar of the tool "${tool.name.slice(0, MAX_NAME_LENGTH)}" ${reason}: the model sees it, but it is not enforced.`,
      );
    }
  }
  return { patterns, warnings };
}

function withPattern(
  tool: ToolDefinition,
  compiled: { readonly argument: string; readonly pattern: string } | undefined,
): ToolDefinition {
  if (!compiled) return tool;
  const { argument, pattern } = compiled;
  const properties = Object(tool.parameters?.["properties"]);
  const schema: unknown = { ...Object(properties[argument]), pattern };
  return { ...tool, parameters: { ...tool.parameters, properties: { ...properties, [argument]: schema } } };
}
