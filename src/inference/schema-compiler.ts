import { isModuleMissing, ServiceError } from "../errors/service-error.ts";
import type {
  CheckFailure,
  GrammarResult,
  GrammarWork,
  LlamaSchema,
  SchemaWork,
  UnenforcedKeyword,
} from "../grammar/grammar-work.ts";
import { NO_ARGUMENTS } from "./tool-calls/forced-calls.ts";
import type { AnswerForm } from "./tool-calls/resolve-tools.ts";

/** Compiles grammars for one request. */
export type CompileGrammar = (work: GrammarWork) => Promise<GrammarResult>;

/** Compiles grammars on another thread; rejects with the signal's reason once it aborts. */
export type CompileOffThread = (work: GrammarWork, signal: AbortSignal) => Promise<GrammarResult>;

/**
 * Compiles on this thread if that is quick: most schemas take less time than a message to another thread. The compiler is an
 * optional module, which is loaded when it is first needed.
 */
export function grammarCompiler(
  compileOffThread: CompileOffThread | undefined,
  signal: AbortSignal,
): CompileGrammar {
  return async (work) => {
    const { compileGrammar, compileIfQuick } = await import("../grammar/grammar-work.ts").catch(
      missingCompiler,
    );
    return (
      compileIfQuick(work) ?? (compileOffThread ? await compileOffThread(work, signal) : compileGrammar(work))
    );
  };
}

function missingCompiler(cause: unknown): never {
  // Any other failure, such as for want of file descriptors, may be over with the next request.
  if (!isModuleMissing(cause, "grammar-work")) throw cause;
  throw new ServiceError(
    "unsupported_feature",
    "This installation has no compiler of grammars, so it supports neither tools nor formats of answers.",
    { cause },
  );
}

/** LRU cache: agents send the same schemas with every step. */
class RecentResults<Result> {
  readonly #limit: number;
  /** Entries, least recently used first. */
  readonly #results = new Map<string, Result>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the cached result, or makes one. */
  async get(key: string, make: () => Promise<Result>): Promise<Result> {
    const result = this.#results.get(key) ?? (await make());
    this.#results.delete(key);
    this.#results.set(key, result);
    for (const oldest of this.#results.keys()) {
      if (this.#results.size <= this.#limit) break;
      this.#results.delete(oldest);
    }
    return result;
  }
}

/** Cache of {@link llamaSchemas}; keys have up to 256 Ki characters. */
const recentLlamaSchemas = new RecentResults<readonly LlamaSchema[]>(16);

/** Converts schemas for templates and for llama.cpp's own grammars, with the keywords that these do not enforce. */
export async function llamaSchemas(
  schemas: readonly unknown[],
  compileGrammar: CompileGrammar,
): Promise<readonly LlamaSchema[]> {
  if (schemas.length === 0) return [];
  return await recentLlamaSchemas.get(JSON.stringify(schemas), async () => {
    const result = await compileGrammar({ kind: "llama", schemas });
    if (result.kind === "llama") return result.schemas;
    throw new TypeError("The result has no schemas.");
  });
}

/** Form of an answer that is defined by a JSON schema. */
export type SchemaForm = Exclude<AnswerForm, { type: "text" | "grammar" }>;

/** Schema of any JSON object. */
export const ANY_OBJECT: Readonly<Record<string, unknown>> = { type: "object" };

/** Checks the text of an answer; resolves with the problem in words, or undefined. */
export type TextCheck = (text: string) => Promise<string | undefined>;

/** Grammar of a form, and the keywords that it does not enforce. */
type CompiledForm = Pick<Extract<GrammarResult, { kind: "made" }>, "ignored" | "checked"> & {
  /** Grammar in GBNF. */
  readonly grammar: string;
};

/** Cache of compiled forms, whose grammars have up to 256 KiB each. */
const recentForms = new RecentResults<CompiledForm>(32);

/**
 * Compiles a form to a grammar.
 * @throws ServiceError invalid_parameter if no answer can fit, or the schema is too large
 */
export async function compileForm(form: SchemaForm, compileGrammar: CompileGrammar): Promise<CompiledForm> {
  const work = workFor(form);
  return await recentForms.get(JSON.stringify(work), async () => {
    const result = await compileGrammar(work);
    if (result.kind === "made") return { ...result, grammar: result.grammar ?? "" };
    if (result.kind === "refused") throw invalidSchema(form, result, result.reason);
    throw new TypeError("The result has no grammar.");
  });
}

/**
 * Creates a check of complete answers, for keywords that the grammar does not enforce. The check rejects with
 * ServiceError inference_failed if it would take too long.
 */
export function answerCheck(form: SchemaForm, compileGrammar: CompileGrammar): TextCheck {
  const by = workFor(form);
  return async (text) => {
    const result = await compileGrammar({ kind: "check", against: by, text });
    if (result.kind === "checked") return describeFailure(result.failure);
    throw new ServiceError(
      "inference_failed",
      "The model's answer could not be checked against the schema, which would take too long; simplify the schema, or limit the answer's length.",
    );
  };
}

function workFor(form: SchemaForm): SchemaWork {
  if (form.type !== "calls")
    return { kind: "schema", schema: form.type === "json" ? ANY_OBJECT : form.schema };
  const tools = form.tools.map(({ name, parameters }) => ({ name, parameters: parameters ?? NO_ARGUMENTS }));
  return { kind: "calls", tools, answer: form.answer };
}

/**
 * Refuses a form with keywords that are neither enforced nor checked.
 * @throws ServiceError invalid_parameter
 */
export function refuseIgnored(form: SchemaForm, { ignored: [gap] }: CompiledForm): void {
  if (!gap) return;
  const problem = `${location(gap)} is not enforced: ${gap.reason}. Leave it out, or do not ask for strictness.`;
  throw invalidSchema(form, gap, problem);
}

/** Creates an error like OpenAI's: `param` is the request's field, and the path within the schema is in the message. */
function invalidSchema(
  form: SchemaForm,
  { tool }: { readonly tool?: string | undefined },
  problem: string,
): ServiceError {
  const toolParam = form.type === "calls" ? form.tools.find(({ name }) => name === tool)?.param : undefined;
  const answerParam = form.type === "json" ? undefined : form.param;
  const param = toolParam ?? answerParam ?? (form.type === "calls" ? "tools" : "format");
  const owner = tool === undefined ? param : `function '${tool}'`;
  return new ServiceError("invalid_parameter", `Invalid schema for ${owner}: ${problem}`, { param });
}

/** Describes a keyword that is not enforced, and the reason. */
export function describeIgnored(gap: UnenforcedKeyword): string {
  const owner = gap.tool === undefined ? "" : ` of the tool "${gap.tool}"`;
  return `${location(gap)}${owner} is not enforced: ${gap.reason}`;
}

function location({ path, keyword }: { readonly path: string; readonly keyword: string }): string {
  return [path, keyword].filter((part) => part !== "").join(".") || "schema";
}

function describeFailure(failure: CheckFailure | undefined): string | undefined {
  return (
    failure && `${failure.path === "" ? "" : `at ${failure.path}, `}${failure.message.replace(/\.$/, "")}`
  );
}
