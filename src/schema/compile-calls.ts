import { CompiledGrammar, type CompileOptions } from "./compiled-grammar.ts";
import { BLANK, choice, type Part, sequence, SPACE, text } from "./grammar/part.ts";
import { SEPARATOR } from "./grammar/build-literal.ts";
import { isObject, type JsonSchema } from "./json-schema.ts";
import type { SchemaGap } from "./schema-gap.ts";
import { type CheckFailure, parseAnswer, SchemaSource } from "./schema-source.ts";
import { holds } from "./terms/term.ts";
import type { WorkBudget } from "./work-budget.ts";

/** A tool whose calls a grammar lets through. */
export interface CallableTool {
  readonly name: string;
  /** Schema of its arguments; any object if left out. */
  readonly parameters?: unknown;
}

interface CallGap extends SchemaGap {
  /** The tool whose parameters have the gap; undefined for the answer's schema. */
  readonly tool: string | undefined;
}

interface CompiledCalls {
  /** GBNF. Its root is one call `{"name": …, "arguments": {…}}`, or one answer. */
  readonly grammar: string;
  readonly unenforced: readonly CallGap[];
  /** What is wrong with a text of the grammar. */
  readonly check: (text: string) => CheckFailure | undefined;
  /** What is wrong with the arguments of one tool. */
  readonly checkArguments: (tool: string, text: string) => CheckFailure | undefined;
}

/** Arguments are always an object. */
const OBJECT: JsonSchema = { type: ["object"] };

/**
 * Compiles the calls of tools into one grammar. Each schema is on its own: a reference to its root stays in it.
 * @param answer schema of an answer that may come instead of a call
 * @throws SchemaError for a schema that no value fits, or that is too large
 */
export function compileCalls(
  tools: readonly CallableTool[],
  answer?: unknown,
  options: CompileOptions = {},
): CompiledCalls {
  const { tools: sources, answer: answerSource } = sourcesOf(tools, answer);
  const { grammar, gaps } = CompiledGrammar.of(options, [...sources.values()], (compiled) => {
    const parts = [...sources].map(([name, source]) =>
      callOf(name, compiled.fitting(source, [holds(OBJECT)], `${name}-arguments`)),
    );
    if (answerSource) parts.push(compiled.fitting(answerSource, [], "answer"));
    return choice(parts);
  });
  const checkArguments = (tool: string, value: string): CheckFailure | undefined =>
    sources.get(tool)?.checkText(value);
  return {
    grammar,
    unenforced: gaps,
    check: (value) => checkCall(value, sources, answerSource),
    checkArguments,
  };
}

/**
 * What is wrong with a text that is to be one call, or one answer.
 * @throws SchemaTooComplexError when it would take more than the budget has
 */
export function checkByCalls(
  { tools, answer }: { readonly tools: readonly CallableTool[]; readonly answer?: unknown },
  value: string,
  budget: WorkBudget,
): CheckFailure | undefined {
  const sources = sourcesOf(tools, answer);
  return checkCall(value, sources.tools, sources.answer, budget);
}

function sourcesOf(tools: readonly CallableTool[], answer: unknown) {
  return {
    tools: new Map(tools.map(({ name, parameters }) => [name, new SchemaSource(parameters ?? OBJECT, name)])),
    answer: answer === undefined ? undefined : new SchemaSource(answer),
  };
}

function callOf(name: string, value: Part): Part {
  return sequence(
    text("{"),
    SPACE,
    text('"name":'),
    BLANK,
    text(JSON.stringify(name)),
    SEPARATOR,
    text('"arguments":'),
    BLANK,
    value,
    SPACE,
    text("}"),
  );
}

function checkCall(
  value: string,
  sources: ReadonlyMap<string, SchemaSource>,
  answer: SchemaSource | undefined,
  budget?: WorkBudget,
): CheckFailure | undefined {
  const parsed = parseAnswer(value);
  if ("failure" in parsed) return parsed.failure;
  const call = isObject(parsed.value) ? parsed.value : {};
  const source = typeof call.name === "string" ? sources.get(call.name) : undefined;
  const ofCall = source?.checkValue(call.arguments, budget);
  if (source && ofCall === undefined) return undefined;
  // An answer may look like a call.
  const ofAnswer = answer?.checkValue(parsed.value, budget);
  if (answer && ofAnswer === undefined) return undefined;
  return (
    ofCall ??
    ofAnswer ?? { path: "name", keyword: "enum", message: "The answer is not a call of a known tool." }
  );
}
