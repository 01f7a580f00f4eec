import {
  continuesLast,
  type GenerationInput,
  type JsonSchema,
  type OutputFormat,
} from "../engine/protocol/generation.ts";
import type { TemplateTraits } from "./chat-template.ts";
import {
  ANY_OBJECT,
  answerCheck,
  compileForm,
  llamaSchemas,
  type CompileGrammar,
  describeIgnored,
  refuseIgnored,
  type SchemaForm,
  type TextCheck,
} from "./schema-compiler.ts";
import { callSchema } from "./tool-calls/forced-calls.ts";
import type { AnswerForm } from "./tool-calls/resolve-tools.ts";

/** How the form of an answer is enforced. */
interface AnswerGrammar {
  readonly format: OutputFormat;
  /** Checks the complete answer; absent: the grammar enforces everything. */
  readonly check?: TextCheck;
  /** Warnings for the user about keywords that are not enforced. */
  readonly warnings: readonly string[];
}

/**
 * Compiles the form of an answer to a grammar. If the answer begins with reasoning or other markup, llama.cpp converts
 * the schema instead, because only llama.cpp knows where the markup ends.
 * @throws ServiceError invalid_parameter if no answer can fit, or if the form is strict and cannot be enforced
 */
export async function answerGrammar(
  form: AnswerForm,
  input: GenerationInput,
  { wrapsText = false }: TemplateTraits,
  compileGrammar: CompileGrammar,
): Promise<AnswerGrammar> {
  if (form.type === "text") return { format: form, warnings: [] };
  if (form.type === "grammar") {
    const grammar = await continuationGrammar(form.grammar, input, compileGrammar);
    return { format: grammar === undefined ? form : { ...form, grammar }, warnings: [] };
  }
  const compiled = await compileForm(form, compileGrammar);
  const check = answerCheck(form, compileGrammar);
  if (isStrict(form)) refuseIgnored(form, compiled);
  const warnings = compiled.ignored.map(describeIgnored);
  const isChecked = compiled.checked.length > 0;
  if (input.kind === "chat" && (wrapsText || input.thinking === true) && !continuesLast(input)) {
    const [converted] = await llamaSchemas([schemaOf(form)], compileGrammar);
    const needsCheck = isChecked || (converted?.dropped.length ?? 0) > 0;
    return {
      format: { type: "json_schema", schema: converted?.schema ?? ANY_OBJECT },
      ...(needsCheck && { check }),
      warnings,
    };
  }
  const continuation =
    form.type === "calls" ? undefined : await continuationGrammar(compiled.grammar, input, compileGrammar);
  const beginning = continuation === undefined ? "" : prefilledText(input);
  return {
    format: { type: "grammar", grammar: continuation ?? compiled.grammar, isJson: true },
    ...(isChecked && { check: (text) => check(beginning + text) }),
    warnings,
  };
}

/**
 * Returns the grammar of the text after the message that the answer continues; undefined if the answer continues none,
 * or if the message is not the beginning of a valid answer.
 */
async function continuationGrammar(
  grammar: string,
  input: GenerationInput,
  compileGrammar: CompileGrammar,
): Promise<string | undefined> {
  const beginning = prefilledText(input);
  if (beginning === "") return undefined;
  const rest = await compileGrammar({ kind: "rest", grammar, beginning });
  return rest.kind === "made" ? rest.grammar : undefined;
}

function prefilledText(input: GenerationInput): string {
  if (input.kind !== "chat" || !continuesLast(input)) return "";
  const content = input.messages.at(-1)?.content ?? [];
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** Returns the form as one schema. */
function schemaOf(form: SchemaForm): JsonSchema {
  if (form.type === "calls") return callSchema(form.tools, form.answer);
  return form.type === "json" ? ANY_OBJECT : form.schema;
}

/** True if gaps are refused. A forced call is always strict: the client has no other answer to fall back to. */
function isStrict(form: SchemaForm): boolean {
  if (form.type !== "calls") return form.type === "json_schema" && form.strict === true;
  return form.answer === undefined || form.tools.some(({ strict }) => strict);
}
