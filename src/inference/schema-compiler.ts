import { ServiceError } from "../errors/service-error.ts";
import type { CheckFailure } from "../grammar/compile-grammar.ts";
import {
  type GrammarResult,
  type GrammarWork,
  made,
  makeGrammar as grammarWorkMakeGrammar,
  makeQuickly,
  type MissingKeywords,
  type SchemaWork,
} from "../grammar/grammar-work.ts";
import { SchemaError, type SchemaGap } from "../grammar/schema-errors.ts";
import { NO_ARGUMENTS } from "./tool-calls/forced-calls.ts";
import type { AnswerForm } from "./tool-calls/resolve-tools.ts";

/** Makes grammars for one request. */
export type MakeGrammar = (work: GrammarWork) => Promise<GrammarResult>;

/** Makes grammars where nobody else waits for them; rejects with the signal's reason once it aborts. */
export type MakeOffThread = (work: GrammarWork, signal: AbortSignal) => Promise<GrammarResult>;

/** What takes little time is done at once: most schemas need less than a message to another thread does. */
export function grammarMaker(elsewhere: MakeOffThread | undefined, signal: AbortSignal): MakeGrammar {
  return async (work) =>
    makeQuickly(work) ?? (elsewhere ? await elsewhere(work, signal) : grammarWorkMakeGrammar(work));
}

/** The results that were used last, by their keys: agents send the same schemas with every step. */
class RecentResults<Result> {
  readonly #most: number;
  /** The one used last comes last. */
  readonly #results = new Map<string, Result>();

  constructor(most: number) {
    this.#most = most;
  }

  /** The known result, or the one that is made now. */
  async of(key: string, make: () => Promise<Result>): Promise<Result> {
    const result = this.#results.get(key) ?? (await make());
    this.#results.delete(key);
    this.#results.set(key, result);
    for (const oldest of this.#results.keys()) {
      if (this.#results.size <= this.#most) break;
      this.#results.delete(oldest);
    }
    return result;
  }
}

/** Each key has up to 256 Ki characters. */
const recent = new RecentResults<readonly MissingKeywords[]>(16);

/** Of each schema, what llama.cpp's grammar of it does not have, and what nobody understands. */
export async function missingKeywords(
  schemas: readonly unknown[],
  makeGrammar: MakeGrammar,
): Promise<readonly MissingKeywords[]> {
  if (schemas.length === 0) return [];
  return await recent.of(JSON.stringify(schemas), async () => {
    const result = await makeGrammar({ kind: "llama", schemas });
    return result.kind === "llama" ? result.missing : [];
  });
}

/** A form that is JSON by a schema. */
export type SchemaForm = Exclude<AnswerForm, { type: "text" | "grammar" }>;

/** The schema of any JSON object. */
export const ANY_OBJECT: Readonly<Record<string, unknown>> = { type: "object" };

/** What is wrong with the text of an answer, in words. */
export type TextCheck = (text: string) => Promise<string | undefined>;

/** A form as a grammar, with what is left to check. */
interface CompiledForm {
  /** In GBNF. */
  readonly grammar: string;
  /** What a schema says and the grammar does not. */
  readonly unenforced: readonly (SchemaGap & { readonly tool?: string | undefined })[];
}

/** Each has a grammar of up to 256 KiB. */
const compileFormRecent = new RecentResults<CompiledForm>(32);

/**
 * The grammar of a form.
 * @throws ServiceError invalid_parameter if no answer can fit, or the schema is too large
 */
export async function compileForm(form: SchemaForm, makeGrammar: MakeGrammar): Promise<CompiledForm> {
  const work = workOf(form);
  try {
    return await compileFormRecent.of(JSON.stringify(work), async () => await compileAnew(work, makeGrammar));
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    throw invalidSchema(form, error, error.reason, error);
  }
}

async function compileAnew(work: SchemaWork, makeGrammar: MakeGrammar): Promise<CompiledForm> {
  const { grammar = "", unenforced } = made(await makeGrammar(work));
  return { grammar, unenforced };
}

/**
 * The check of whole answers to a form, for what its grammar does not say.
 * @throws ServiceError inference_failed (the check) when it would take too long
 */
export function checkOfForm(form: SchemaForm, makeGrammar: MakeGrammar): TextCheck {
  const by = workOf(form);
  return async (text) => {
    const result = await makeGrammar({ kind: "check", by, text });
    if (result.kind === "checked") return inWords(result.failure);
    throw new ServiceError(
      "inference_failed",
      "The model's answer could not be checked against the schema, which would take too long; simplify the schema, or limit the answer's length.",
    );
  };
}

function workOf(form: SchemaForm): SchemaWork {
  if (form.type !== "calls")
    return { kind: "schema", schema: form.type === "json" ? ANY_OBJECT : form.schema };
  const tools = form.tools.map(({ name, parameters }) => ({ name, parameters: parameters ?? NO_ARGUMENTS }));
  return { kind: "calls", tools, answer: form.answer };
}

/**
 * Refuses a form of which something would not be kept.
 * @throws ServiceError invalid_parameter
 */
export function refuseGap(form: SchemaForm, { unenforced }: CompiledForm): void {
  const gap = unenforced.find(({ kind }) => kind === "ignored");
  if (!gap) return;
  const what = `${place(gap)} is not enforced: ${gap.reason}. Leave it out, or do not ask for strictness.`;
  throw invalidSchema(form, gap, what);
}

/** As OpenAI has it: the error's field is the request's, and the place within the schema is in the message. */
function invalidSchema(
  form: SchemaForm,
  { tool }: { readonly tool?: string | undefined },
  what: string,
  cause?: unknown,
): ServiceError {
  const ofTool = form.type === "calls" ? form.tools.find(({ name }) => name === tool)?.param : undefined;
  const ofAnswer = form.type === "json" ? undefined : form.param;
  const param = ofTool ?? ofAnswer ?? (form.type === "calls" ? "tools" : "format");
  const whose = tool === undefined ? param : `function '${tool}'`;
  return new ServiceError("invalid_parameter", `Invalid schema for ${whose}: ${what}`, { param, cause });
}

/** What is not kept, and why. */
export function sentence(gap: CompiledForm["unenforced"][number]): string {
  const whose = gap.tool === undefined ? "" : ` of the tool "${gap.tool}"`;
  return `${place(gap)}${whose} is not enforced: ${gap.reason}`;
}

function place({ path, keyword }: { readonly path: string; readonly keyword: string }): string {
  return [path, keyword].filter((part) => part !== "").join(".") || "schema";
}

function inWords(failure: CheckFailure | undefined): string | undefined {
  return (
    failure && `${failure.path === "" ? "" : `at ${failure.path}, `}${failure.message.replace(/\.$/, "")}`
  );
}
