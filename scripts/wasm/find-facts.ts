import { findBarrierCopies, findGraphLocals, findStagingLocals } from "./copied-code.ts";
import { FunctionFinder } from "./find-functions.ts";
import { initialMemory, numberedNames } from "./initial-memory.ts";
import { findNumber, type NumberPlaces } from "./find-numbers.ts";
import type { BuildFacts, Numbers } from "./print-facts.ts";
import type { StockModule } from "./stock-module.ts";

/** Outcome of looking for one constant in the new build. */
export interface Finding {
  readonly what: string;
  /**
   * State of the constant; same: unchanged; moved: at another address; changed: found, but must be checked; gone: not
   * found.
   */
  readonly state: "same" | "moved" | "changed" | "gone";
  readonly detail: string;
}

export interface FoundFacts {
  /** Leaves out those that are gone. */
  readonly facts: BuildFacts;
  readonly findings: readonly Finding[];
}

/** First names in llama.cpp's tables of operators. */
const TABLES = {
  operators: ["NONE", "DUP", "ADD"],
  unaryOperators: ["ABS", "SGN", "NEG"],
  gatedOperators: ["REGLU", "GEGLU"],
} as const;

/** Finds the facts of one build in another. */
export function findFacts(known: BuildFacts, before: StockModule, after: StockModule): FoundFacts {
  const finder = new FunctionFinder(before, after);
  const findings: Finding[] = [];
  const functions = found(Object.entries(known.functions), findings, ([name, index]) =>
    foundFunction(finder, name, index),
  );
  const { importedFunctions, bodies } = before.module;
  const all = Array.from(bodies, (_, at) => at + importedFunctions);
  const addresses = found(Object.entries(known.addresses), findings, ([name, address]) =>
    foundNumber(`address of ${name}`, address, findNumber(finder, all, address, ["constant", "offset"])),
  );
  const offsets = found(Object.entries(known.offsets), findings, ([name, { at, in: where }]) => {
    const places = findNumber(finder, before.named(where), at, ["offset"]);
    const one = foundNumber(`offset of ${name}`, at, places);
    return { ...one, value: one.value === undefined ? undefined : { at: one.value, in: where } };
  });
  const memory = initialMemory(after);
  const numbersOf = (table: keyof typeof TABLES): Numbers => {
    const numbers = numberedNames(memory, TABLES[table]);
    return found(Object.entries(known[table]), findings, ([name, number]) =>
      compared(`number of ${name} in ${table}`, number, numbers?.get(name)),
    );
  };
  const pinned = { ...known, functions, offsets };
  const barrierCopies = findBarrierCopies(after, pinned);
  findings.push(whole("copies of ggml_barrier", known.barrierCopies, barrierCopies));
  const graphLocals = findGraphLocals(after, pinned);
  findings.push(whole("locals of ggml_graph_compute_thread", known.graphLocals, graphLocals));
  const stagingLocals = findStagingLocals(after, pinned);
  findings.push(whole("locals of llama_model_loader::load_all_data", known.stagingLocals, stagingLocals));
  const facts: BuildFacts = {
    wllamaVersion: after.version,
    llamaCppBuild: after.llamaCpp,
    stockSha256: after.sha256,
    functions,
    barrierCopies,
    graphLocals: graphLocals ?? known.graphLocals,
    stagingLocals: stagingLocals ?? known.stagingLocals,
    addresses,
    offsets,
    operators: numbersOf("operators"),
    unaryOperators: numbersOf("unaryOperators"),
    gatedOperators: numbersOf("gatedOperators"),
  };
  return { facts, findings };
}

type Found<Value> = Finding & { readonly value: Value | undefined };

/** Notes what was found of each entry, and keeps those that were. */
function found<Known, Value>(
  entries: readonly (readonly [string, Known])[],
  findings: Finding[],
  find: (entry: readonly [string, Known]) => Found<Value>,
): Record<string, Value> {
  const kept = entries.flatMap((entry) => {
    const { value, ...finding } = find(entry);
    findings.push(finding);
    return value === undefined ? [] : [[entry[0], value] as const];
  });
  return Object.fromEntries(kept);
}

function foundFunction(finder: FunctionFinder, name: string, index: number): Found<number> {
  const result = finder.find(index);
  if (!result) return { what: name, state: "gone", detail: "no function is like it", value: undefined };
  const other = finder.after.names[result.index];
  const isSure = result.similarity === 1 && finder.sameType(index, result.index);
  const parts = [
    result.index === index ? `function ${index}` : `function ${index} is ${result.index}`,
    ...(result.by === "name" ? [] : [`found by its ${result.by}, named ${other ?? "nothing"}`]),
    ...(finder.sameType(index, result.index) ? [] : ["takes or returns something else"]),
    ...(result.similarity === 1 ? [] : [`${Math.round(result.similarity * 100)} % of the code is the same`]),
  ];
  const state = !isSure ? "changed" : result.index === index ? "same" : "moved";
  return { what: name, state, detail: parts.join(", "), value: result.index };
}

function foundNumber(what: string, number: number, places: NumberPlaces): Found<number> {
  const { value, votes, against, of, isGuess } = places;
  const plain = compared(what, number, value);
  if (value === undefined) return { ...plain, detail: `${number}: none of ${of} places says where it is` };
  if (isGuess) {
    const state = value === number ? "same" : "changed";
    return { ...plain, state, detail: `${plain.detail}, as its neighbors moved` };
  }
  const isSure = against === 0 && 2 * votes >= of;
  return {
    ...plain,
    state: isSure ? plain.state : "changed",
    detail: `${plain.detail}, in ${votes} of ${of} places`,
  };
}

function compared(what: string, number: number, value: number | undefined): Found<number> {
  if (value === undefined) return { what, state: "gone", detail: `was ${number}`, value };
  if (value === number) return { what, state: "same", detail: String(number), value };
  return { what, state: "moved", detail: `${number} is ${value}`, value };
}

function whole(what: string, known: unknown, value: unknown): Finding {
  const [old, fresh] = [JSON.stringify(known), JSON.stringify(value)];
  if (value === undefined) return { what, state: "gone", detail: `was ${old}` };
  return {
    what,
    state: old === fresh ? "same" : "changed",
    detail: old === fresh ? old : `${old} is ${fresh}`,
  };
}
