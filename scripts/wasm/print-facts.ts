import * as pinned from "../../wasm/llama-cpp-build.ts";

/** The facts of one build, as wasm/llama-cpp-build.ts has them. */
export interface BuildFacts {
  readonly wllamaVersion: string;
  readonly llamaCppBuild: string;
  readonly stockSha256: string;
  readonly functions: Readonly<Record<string, number>>;
  readonly barrierCopies: readonly BarrierCopy[];
  readonly graphLocals: { readonly pool: number; readonly graph: number };
  readonly stagingLocals: { readonly data: number; readonly size: number; readonly tensor: number };
  readonly addresses: Readonly<Record<string, number>>;
  readonly offsets: Readonly<Record<string, { readonly at: number; readonly in: string }>>;
  readonly operators: Numbers;
  readonly unaryOperators: Numbers;
  readonly gatedOperators: Numbers;
}

export type Numbers = Readonly<Record<string, number>>;

/** One function that the compiler has copied ggml_barrier into, from one local with the thread pool. */
export interface BarrierCopy {
  readonly function: string;
  readonly pool: number;
  readonly passed: number;
  readonly times: number;
}

/** The facts that are committed. */
export const PINNED_FACTS: BuildFacts = {
  wllamaVersion: pinned.WLLAMA_VERSION,
  llamaCppBuild: pinned.LLAMA_CPP_BUILD,
  stockSha256: pinned.STOCK_SHA256,
  functions: pinned.FUNCTIONS,
  barrierCopies: pinned.BARRIER_COPIES,
  graphLocals: pinned.GRAPH_LOCALS,
  stagingLocals: pinned.STAGING_LOCALS,
  addresses: pinned.ADDRESSES,
  offsets: pinned.OFFSETS,
  operators: pinned.OPERATORS,
  unaryOperators: pinned.UNARY_OPERATORS,
  gatedOperators: pinned.GATED_OPERATORS,
};

/** The text of wasm/llama-cpp-build.ts. */
export function factsModule(facts: BuildFacts): string {
  return `/**
 * Constants of one build of llama.cpp, the one in the package @wllama/wllama: locations of its functions, data and fields.
 * scripts/wasm/move-build.ts writes this file; wasm/README.md explains how to move to another build.
 */

/** Version of @wllama/wllama. */
export const WLLAMA_VERSION = ${JSON.stringify(facts.wllamaVersion)};

/** Build of llama.cpp in it. */
export const LLAMA_CPP_BUILD = ${JSON.stringify(facts.llamaCppBuild)};

/** SHA-256 of the package's esm/wasm/wllama.wasm. Engine images are built only from this file. */
export const STOCK_SHA256 = ${JSON.stringify(facts.stockSha256)};

/** Indices of functions, by their names in the package's symbol map. */
export const FUNCTIONS = ${record(facts.functions)} as const;

/**
 * Functions into which the compiler has inlined ggml_barrier: the locals with the thread pool and the number of barriers
 * passed before, and how many copies use this pair.
 */
export const BARRIER_COPIES = [
${facts.barrierCopies.map((copy) => `  ${inline({ ...copy })},\n`).join("")}] as const;

/** Locals of ggml_graph_compute_thread. */
export const GRAPH_LOCALS = ${inline({ ...facts.graphLocals })} as const;

/** Locals of llama_model_loader::load_all_data where it reads a tensor into a temporary buffer and then sets it. */
export const STAGING_LOCALS = ${inline({ ...facts.stagingLocals })} as const;

/** Addresses of data. */
export const ADDRESSES = ${record(facts.addresses)} as const;

/** Offsets of fields within llama.cpp's structures, each with a function that reads or writes the field. */
export const OFFSETS = ${record(facts.offsets)} as const;

/** Numbers of enum ggml_op. */
export const OPERATORS = ${record(facts.operators)} as const;

/** Numbers of enum ggml_unary_op. */
export const UNARY_OPERATORS = ${record(facts.unaryOperators)} as const;

/** Numbers of enum ggml_glu_op. */
export const GATED_OPERATORS = ${record(facts.gatedOperators)} as const;
`;
}

/** The formatter breaks longer lines. */
const LINE_WIDTH = 110;

function record(entries: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(entries).map(([name, value]) => {
    const line = `  ${key(name)}: ${inline(value)},`;
    if (line.length <= LINE_WIDTH) return `${line}\n`;
    return `  ${key(name)}: {\n${fieldsOf(value)
      .map((field) => `    ${field},\n`)
      .join("")}  },\n`;
  });
  return `{\n${lines.join("")}}`;
}

function inline(value: unknown): string {
  const isPlain = typeof value !== "object" || value === null;
  return isPlain ? JSON.stringify(value) : `{ ${fieldsOf(value).join(", ")} }`;
}

function fieldsOf(value: unknown): string[] {
  return Object.entries(Object(value)).map(([name, each]) => `${key(name)}: ${inline(each)}`);
}

const key = (name: string): string => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name));

/** The text of wasm/kernels/llama-cpp-build.h: the same facts for the kernels, and the cells they share with scripts. */
export function factsHeader(facts: BuildFacts, cells: Readonly<Record<string, number>>): string {
  const offsets = Object.fromEntries(Object.entries(facts.offsets).map(([name, { at }]) => [name, at]));
  return `// What the kernels need to know of llama.cpp ${facts.llamaCppBuild}. Made from wasm/llama-cpp-build.ts and
// wasm/memory-cells.ts by scripts/wasm/move-build.ts --header: do not edit.
#pragma once

// Offsets of fields in llama.cpp's structures.
${table(offsets, (name) => `AT_${constant(name)}`)}
// Addresses of llama.cpp's data.
${table(facts.addresses, (name) => `ADDRESS_OF_${constant(name)}`)}
// Cells of our own below llama.cpp's data.
${table(cells, (name) => `${constant(name)}_CELL`)}
// enum ggml_op
${table(facts.operators, (name) => `OP_${name}`)}
// enum ggml_unary_op
${table(facts.unaryOperators, (name) => `UNARY_${name}`)}
// enum ggml_glu_op
${table(facts.gatedOperators, (name) => `GATED_${name}`)}`;
}

/** "ggml_tensor.view_src" and "kvCacheClass" as C names constants. */
const constant = (name: string): string =>
  name
    .replaceAll(/[a-z](?=[A-Z])/g, "$&_")
    .replaceAll(/\W/g, "_")
    .toUpperCase();

function table(entries: Readonly<Record<string, number>>, name: (key: string) => string): string {
  const lines = Object.entries(entries).map(([entry, value]) => `  ${name(entry)} = ${value},\n`);
  return `enum {\n${lines.join("")}};\n`;
}
