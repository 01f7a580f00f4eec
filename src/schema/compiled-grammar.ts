import { GrammarWriter } from "./gbnf/grammar-writer.ts";
import { ValueBuilder } from "./grammar/build-value.ts";
import type { Part } from "./grammar/part.ts";
import { PartWriter } from "./grammar/write-parts.ts";
import { findContradiction } from "./find-contradiction.ts";
import { SchemaError } from "./schema-error.ts";
import { SchemaTooComplexError } from "./schema-errors.ts";
import type { SchemaGap } from "./schema-gap.ts";
import type { SchemaSource } from "./schema-source.ts";
import { Expander } from "./terms/expand.ts";
import { type Conjunction, holds } from "./terms/term.ts";
import { DEFAULT_WORK, WorkBudget } from "./work-budget.ts";

export interface CompileOptions {
  /** Work that one try to compile may cost; there are up to five. */
  readonly steps?: number;
  /** Throws SchemaTooComplexError instead of a further try. */
  readonly isOneTry?: boolean;
  /**
   * Whether an object with declared properties may have others where its schema does not say so, as JSON Schema has it. Small
   * models write better without. Default: true.
   */
  readonly allowsOthers?: boolean;
}

/** How much of a schema is in its grammar: all, all but sets of texts, or only what needs no room. */
type Level = "full" | "no texts" | "coarse";

/** Tries with all but the patterns that took too long. */
const MAX_TRIES = 3;

interface ToolGap extends SchemaGap {
  readonly tool: string | undefined;
}

/** A grammar in the making: several schemas can be parts of it. */
export class CompiledGrammar {
  readonly #budget: WorkBudget;
  readonly #level: Level;
  readonly #allowsOthers: boolean;
  readonly #gaps = new Map<string, ToolGap>();
  readonly #checks: { source: SchemaSource; part: Part; terms: Conjunction; expander: Expander }[] = [];
  readonly #writer = new GrammarWriter();

  private constructor(options: CompileOptions, level: Level) {
    this.#budget = new WorkBudget(options.steps ?? DEFAULT_WORK);
    this.#level = level;
    this.#allowsOthers = options.allowsOthers ?? true;
  }

  /**
   * Compiles what `build` makes of schemas. What is too large is tried again, with what needs room left to the check.
   * @throws SchemaError
   */
  static of(
    options: CompileOptions,
    sources: readonly SchemaSource[],
    build: (grammar: CompiledGrammar) => Part,
  ): { readonly grammar: string; readonly gaps: readonly ToolGap[] } {
    for (let level: Level = "full", tries = 1; ; tries += 1) {
      try {
        const compiled = new CompiledGrammar(options, level);
        const grammar = compiled.#write(build(compiled));
        return { grammar, gaps: [...compiled.#gaps.values(), ...compiled.#losses()] };
      } catch (error) {
        if (options.isOneTry && error instanceof RangeError)
          throw new SchemaTooComplexError("it is too deep");
        // Each optional property is a rule within the one before: so many exhaust the stack.
        if (error instanceof RangeError) {
          throw new SchemaError("The schema is too large: it has too many properties or levels.", {
            path: "",
            keyword: "",
          });
        }
        if (!(error instanceof SchemaTooComplexError) || options.isOneTry) throw error;
        if (level === "coarse") {
          throw new SchemaError(`The schema is too large: ${error.reason}.`, { path: "", keyword: "" });
        }
        // A single pattern that takes too long is left out alone.
        const isOnePattern = sources.some(({ texts }) => texts.current !== undefined);
        if (level === "no texts") level = "coarse";
        else if (!isOnePattern || tries >= MAX_TRIES) level = "no texts";
      }
    }
  }

  /** The values that fit a schema and further terms. */
  fitting(source: SchemaSource, further: Conjunction, hint: string): Part {
    const { document, texts, validator, tool } = source;
    texts.begin(this.#budget, this.#level !== "full");
    const parts = { document, texts, validator, budget: this.#budget, isCoarse: this.#level === "coarse" };
    const expander = new Expander(parts);
    const gap = (each: SchemaGap): void => {
      this.#gaps.set(JSON.stringify([tool, each.path, each.keyword, each.kind]), { ...each, tool });
    };
    const builder = new ValueBuilder({ ...parts, expander, allowsOthers: this.#allowsOthers, gap });
    const terms = [holds(source.root), ...further];
    const part = builder.value(terms, hint);
    this.#checks.push({ source, part, terms, expander });
    return part;
  }

  #losses(): ToolGap[] {
    return this.#checks.flatMap(({ source: { document, tool } }) =>
      document.losses.map((loss): ToolGap => ({ ...loss, kind: "ignored", tool })),
    );
  }

  #write(part: Part): string {
    const parts = new PartWriter(this.#writer, this.#budget);
    for (const { source, part: own, terms, expander } of this.#checks) {
      if (parts.canFit(own)) continue;
      throw findContradiction(source, terms, expander);
    }
    const term = parts.write(part) ?? '""';
    return this.#writer.toString(this.#writer.rule("start", term));
  }
}
