import { CompiledGrammar, type CompileOptions } from "./compiled-grammar.ts";
import type { SchemaGap } from "./schema-gap.ts";
import { type CheckFailure, SchemaSource } from "./schema-source.ts";
import type { WorkBudget } from "./work-budget.ts";

/** A schema as a grammar for llama.cpp, with what is left to check. */
export interface CompiledSchema {
  /** GBNF. Its root is one JSON value without space around it. */
  readonly grammar: string;
  /** What the schema says and the grammar does not. */
  readonly unenforced: readonly SchemaGap[];
  /** What is wrong with an answer, first of all whether it is JSON; undefined if it fits the whole schema. */
  readonly check: (text: string) => CheckFailure | undefined;
}

/**
 * Compiles a JSON Schema into a grammar that lets a model write only what fits it. Never reads anything but the schema.
 * @throws SchemaError for a schema that no value fits, or that is too large
 */
export function compileSchema(schema: unknown, options: CompileOptions = {}): CompiledSchema {
  const source = new SchemaSource(schema);
  const { grammar, gaps } = CompiledGrammar.of(options, [source], (compiled) =>
    compiled.fitting(source, [], "root-value"),
  );
  return { grammar, unenforced: gaps, check: (text) => source.checkText(text) };
}

/**
 * What is wrong with an answer to a schema.
 * @throws SchemaTooComplexError when it would take more than the budget has
 */
export function checkBySchema(schema: unknown, text: string, budget: WorkBudget): CheckFailure | undefined {
  return new SchemaSource(schema).checkText(text, budget);
}
