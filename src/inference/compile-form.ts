import { ServiceError } from "../errors/service-error.ts";
import { made, type SchemaWork } from "../schema/grammar-work.ts";
import { SchemaError } from "../schema/schema-error.ts";
import type { SchemaGap } from "../schema/schema-gap.ts";
import type { CheckFailure } from "../schema/schema-source.ts";
import { NO_ARGUMENTS } from "./forced-call/call-schema.ts";
import type { MakeGrammar } from "./make-grammar.ts";
import { RecentResults } from "./recent-results.ts";
import type { AnswerForm } from "./resolve-tools.ts";

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
const recent = new RecentResults<CompiledForm>(32);

/**
 * The grammar of a form.
 * @throws ServiceError invalid_parameter if no answer can fit, or the schema is too large
 */
export async function compileForm(form: SchemaForm, makeGrammar: MakeGrammar): Promise<CompiledForm> {
  const work = workOf(form);
  try {
    return await recent.of(JSON.stringify(work), async () => await compileAnew(work, makeGrammar));
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
