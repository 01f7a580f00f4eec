import { align, type Alignment } from "./align.ts";
import { functionTypeText } from "../../wasm/linker/wasm-module.ts";
import type { StockModule } from "./stock-module.ts";

/** A function of the old module in the new one. */
interface FoundFunction {
  readonly index: number;
  /** name: only one has it; likeness: the most similar of several, or of all; bytes: one has the very same body. */
  readonly by: "name" | "likeness" | "bytes";
  /** 1: the same instructions; less: this share of them. */
  readonly similarity: number;
}

/** Below this a function of another name is another function. */
const LEAST_SIMILARITY = 0.6;

/** A body whose length differs by more than this is not looked at where names do not help. */
const MAX_GROWTH = 1.5;

/** Finds functions of one module in another; alignments are made once for each pair. */
export class FunctionFinder {
  readonly before: StockModule;
  readonly after: StockModule;
  readonly #alignments = new Map<string, Alignment>();
  readonly #found = new Map<number, FoundFunction | undefined>();

  constructor(before: StockModule, after: StockModule) {
    this.before = before;
    this.after = after;
  }

  /** Which instructions of a function stand for those of another. */
  alignment(index: number, found: number): Alignment {
    const key = `${index} ${found}`;
    const known = this.#alignments.get(key) ?? align(this.before.code(index), this.after.code(found));
    this.#alignments.set(key, known);
    return known;
  }

  /**
   * Finds a function by its name; of several with that name, the most similar one; where the name is gone, the one with
   * the same body or the most similar one of all, if it is similar enough.
   */
  find(index: number): FoundFunction | undefined {
    if (!this.#found.has(index)) this.#found.set(index, this.#search(index));
    return this.#found.get(index);
  }

  #search(index: number): FoundFunction | undefined {
    const name = this.before.names[index];
    const named = name === undefined ? [] : this.after.named(name).filter((each) => this.#isDefined(each));
    if (named.length === 1) return this.#rated(index, named[0]!, "name");
    const sameBody = this.#sameBody(index, named);
    if (sameBody.length === 1) return this.#rated(index, sameBody[0]!, "bytes");
    if (named.length > 1) return this.#mostSimilar(index, this.#fitting(index, named), 0);
    const size = this.#size(this.before, index);
    const near = this.#fitting(
      index,
      Array.from(this.after.module.bodies, (_, at) => at + this.after.module.importedFunctions).filter(
        (each) => {
          const other = this.#size(this.after, each);
          return other <= size * MAX_GROWTH && size <= other * MAX_GROWTH;
        },
      ),
    );
    return this.#mostSimilar(index, near, LEAST_SIMILARITY);
  }

  /** True if both functions have the same parameters and results. */
  sameType(index: number, found: number): boolean {
    return typeOf(this.before, index) === typeOf(this.after, found);
  }

  #isDefined(index: number): boolean {
    return index >= this.after.module.importedFunctions;
  }

  #rated(index: number, found: number, by: FoundFunction["by"]): FoundFunction {
    return { index: found, by, similarity: this.alignment(index, found).similarity };
  }

  /** Several equally similar ones count as none: the code cannot tell them apart. */
  #mostSimilar(index: number, candidates: readonly number[], least: number): FoundFunction | undefined {
    const [best, next] = candidates
      .map((each) => this.#rated(index, each, "likeness"))
      .toSorted((a, b) => b.similarity - a.similarity);
    if (!best || best.similarity < least || best.similarity === next?.similarity) return undefined;
    return best;
  }

  /** Those that take and return the same, where there are any. */
  #fitting(index: number, candidates: readonly number[]): readonly number[] {
    const fitting = candidates.filter((each) => this.sameType(index, each));
    return fitting.length > 0 ? fitting : candidates;
  }

  /** Among those that have the name, or among all where none has. */
  #sameBody(index: number, named: readonly number[]): number[] {
    const { importedFunctions, bodies } = this.after.module;
    const body = Buffer.from(this.before.module.bodies[index - this.before.module.importedFunctions]!);
    const candidates = named.length > 0 ? named : Array.from(bodies, (_, at) => at + importedFunctions);
    return candidates.filter((each) => body.equals(bodies[each - importedFunctions]!));
  }

  #size({ module }: StockModule, index: number): number {
    return module.bodies[index - module.importedFunctions]!.length;
  }
}

function typeOf({ module }: StockModule, index: number): string {
  return functionTypeText(module, module.functionTypes[index - module.importedFunctions]);
}
