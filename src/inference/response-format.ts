import {
  continuesLast,
  type GenerationInput,
  type JsonSchema,
  type OutputFormat,
} from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import { made } from "../grammar/grammar-work.ts";
import { checkLongGbnf, TextGrammarError } from "../grammar/text-grammar.ts";
import type { TemplateTraits } from "./chat-template.ts";
import type { RequestedFormat } from "./inference.ts";
import {
  ANY_OBJECT,
  checkOfForm,
  compileForm,
  type MakeGrammar,
  missingKeywords,
  refuseGap,
  type SchemaForm,
  sentence,
  type TextCheck,
} from "./schema-compiler.ts";
import { callSchema } from "./tool-calls/forced-calls.ts";
import type { AnswerForm } from "./tool-calls/resolve-tools.ts";

/** How the engine keeps an answer to its form. */
interface AnswerGrammar {
  readonly format: OutputFormat;
  /** What is wrong with an answer, of what the grammar cannot say; absent: the grammar says it all. */
  readonly check?: TextCheck;
  /** What is not kept at all, in words for the user. */
  readonly warnings: readonly string[];
}

/**
 * Turns the form of an answer into a grammar of our own. Only an answer that begins with reasoning or other markup is left
 * to llama.cpp's conversion of schemas, since only llama.cpp knows where that ends.
 * @throws ServiceError invalid_parameter if no answer can fit, or if the form is strict and cannot be kept
 */
export async function answerGrammar(
  form: AnswerForm,
  input: GenerationInput,
  { wrapsText = false }: TemplateTraits,
  makeGrammar: MakeGrammar,
): Promise<AnswerGrammar> {
  if (form.type === "text") return { format: form, warnings: [] };
  if (form.type === "grammar") {
    const grammar = await continued(form.grammar, input, makeGrammar);
    return { format: grammar === undefined ? form : { ...form, grammar }, warnings: [] };
  }
  const compiled = await compileForm(form, makeGrammar);
  const check = checkOfForm(form, makeGrammar);
  if (isStrict(form)) refuseGap(form, compiled);
  const ignored = compiled.unenforced.filter(({ kind }) => kind === "ignored");
  const warnings = ignored.map(sentence);
  const isChecked = compiled.unenforced.length > ignored.length;
  if (input.kind === "chat" && (wrapsText || input.thinking === true) && !continuesLast(input)) {
    const schema = schemaOf(form);
    const [missing] = isChecked ? [] : await missingKeywords([schema], makeGrammar);
    const needsCheck = isChecked || (missing?.dropped.length ?? 0) > 0;
    return {
      format: { type: "json_schema", schema },
      ...(needsCheck && { check }),
      warnings,
    };
  }
  const rest = form.type === "calls" ? undefined : await continued(compiled.grammar, input, makeGrammar);
  const beginning = rest === undefined ? "" : beginningOf(input);
  return {
    format: { type: "grammar", grammar: rest ?? compiled.grammar, isJson: true },
    ...(isChecked && { check: (text) => check(beginning + text) }),
    warnings,
  };
}

/**
 * The grammar of what may follow the message that the answer continues; undefined if it does not begin such an answer, or
 * if that cannot be told.
 */
async function continued(
  grammar: string,
  input: GenerationInput,
  makeGrammar: MakeGrammar,
): Promise<string | undefined> {
  const beginning = beginningOf(input);
  if (beginning === "") return undefined;
  const rest = await makeGrammar({ kind: "rest", grammar, beginning });
  return rest.kind === "made" ? rest.grammar : undefined;
}

function beginningOf(input: GenerationInput): string {
  if (input.kind !== "chat" || !continuesLast(input)) return "";
  const content = input.messages.at(-1)?.content ?? [];
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** The same as one schema. */
function schemaOf(form: SchemaForm): JsonSchema {
  if (form.type === "calls") return callSchema(form.tools, form.answer);
  return form.type === "json" ? ANY_OBJECT : form.schema;
}

/** A call that must be made is kept to its schema, or refused: the client has no other answer to fall back to. */
function isStrict(form: SchemaForm): boolean {
  if (form.type !== "calls") return form.type === "json_schema" && form.strict === true;
  return form.answer === undefined || form.tools.some(({ strict }) => strict);
}

/** The choices of a request have one format, of which one grammar is made, or which is checked once. */
const formats = new WeakMap<RequestedFormat, Promise<OutputFormat>>();

/**
 * Makes a grammar of what a text must be, and reads a long one of a request, before anything is done for it.
 * @throws ServiceError invalid_parameter when no grammar can say it, or llama.cpp could not read it
 */
export async function readyFormat(format: RequestedFormat, makeGrammar: MakeGrammar): Promise<OutputFormat> {
  if (format.type !== "grammar" && format.type !== "texts") return format;
  const ready = formats.get(format) ?? makeReady(format, makeGrammar);
  formats.set(format, ready);
  return await ready;
}

async function makeReady(
  format: Extract<RequestedFormat, { type: "grammar" | "texts" }>,
  makeGrammar: MakeGrammar,
): Promise<OutputFormat> {
  const { param = "grammar" } = format;
  try {
    if (format.type === "grammar") {
      await checkLongGbnf(format.grammar);
      return format;
    }
    const { language, given } = format;
    const { grammar = "" } = made(await makeGrammar({ kind: "texts", language, given }));
    return { type: "grammar", grammar, param };
  } catch (cause) {
    if (!(cause instanceof TextGrammarError)) throw cause;
    throw new ServiceError("invalid_parameter", `${param}: cannot be enforced: ${cause.message}.`, {
      param,
      cause,
    });
  }
}
