import type { Form } from "./fused-program.ts";
import { canBePart } from "./fused-program.ts";
import { readProgram, type WgslProgram } from "./wgsl-program.ts";

/** What a program does, as far as it matters for what it can be fused with. */
export interface Fusible {
  readonly kind: "product" | "activation" | "cache-write" | "addition" | "norm";
  readonly program: WgslProgram;
  /** Bindings that it writes. */
  readonly writes: readonly number[];
  /** Bindings that others may write at the same time. */
  readonly atomics: readonly number[];
  /** Rows that a workgroup of a product computes; 0 for others. */
  readonly rows: number;
}

/** A program that runs: what it is, its workgroups, and the buffers that it binds. */
export interface Step {
  readonly fusible: Fusible;
  readonly workgroups: number;
  readonly entries: readonly BufferEntry[];
}

export interface BufferEntry {
  readonly binding: number;
  readonly resource: { readonly buffer: object; readonly offset?: number; readonly size?: number };
}

/** Bytes of a number that an activation writes. */
const FLOAT_BYTES = 4;

/** More workgroups than this are not computed one after the other. */
const MOST_CHAINED = 16;

/** What of llama.cpp's programs can be fused; undefined for the others. */
export function readFusible(code: string): Fusible | undefined {
  const program = readProgram(code);
  if (!program || !canBePart(program)) return undefined;
  const { names, bindings } = program;
  const storage = bindings.filter(({ space }) => space.startsWith("storage")).map(({ binding }) => binding);
  const fusible = (
    kind: Fusible["kind"],
    writes: readonly number[],
    more: Partial<Fusible> = {},
  ): Fusible => ({
    kind,
    program,
    writes,
    atomics: [],
    rows: 0,
    ...more,
  });
  if (names.includes("accumulate_vec_dot")) {
    // Of one column: with more of them, a workgroup's rows lie apart.
    const rows = /array<array<f32, (\d+)>, 1>/.exec(program.code)?.[1];
    return rows === undefined || storage.length !== 3
      ? undefined
      : fusible("product", [2], { rows: Number(rows) });
  }
  if (names.includes("a_value") && names.includes("b_value") && storage.length === 3) {
    return fusible("activation", [2]);
  }
  if (names.includes("error") && names.includes("idx") && storage.length === 4) {
    return fusible("cache-write", [2], { atomics: [3] });
  }
  if (names.includes("src1_index") && /return a \+ b;/.test(program.code)) {
    return fusible("addition", [storage.length === 3 ? 2 : 0]);
  }
  if (names.includes("rn_src") && names.includes("mul_src")) {
    return fusible("norm", [storage.length === 3 ? 2 : (storage.at(-1) ?? 0)]);
  }
  return undefined;
}

/** How the first of these steps can be fused with those after it; undefined: it cannot. */
export function formOf(steps: readonly (Step | undefined)[]): { form: Form; count: number } | undefined {
  const [a, b, c] = steps;
  if (!a || !b || a.fusible.program.threads !== b.fusible.program.threads) return undefined;
  const kinds = [a, b, c].map((step) => step?.fusible.kind).join(" ");
  if (kinds === "product product activation" && c && areRows(a, b, c)) return { form: "rows", count: 3 };
  if (kinds.startsWith("product product") || kinds.startsWith("cache-write cache-write")) {
    return areApart(a, b) ? { form: "beside", count: 2 } : undefined;
  }
  const isChain = kinds.startsWith("addition norm") && b.workgroups === 1 && a.workgroups <= MOST_CHAINED;
  return isChain ? { form: "chain", count: 2 } : undefined;
}

/** Neither reads or writes what the other writes. */
function areApart(a: Step, b: Step): boolean {
  const touches = (writer: Step, other: Step): boolean =>
    writer.entries
      .filter(({ binding }) => writer.fusible.writes.includes(binding))
      .some((written) => other.entries.some((entry) => overlap(written, entry)));
  return !touches(a, b) && !touches(b, a);
}

/** The third step computes each number from the same one of both products, which have as many workgroups. */
function areRows(a: Step, b: Step, c: Step): boolean {
  const { rows } = a.fusible;
  const at = (step: Step, binding: number): BufferEntry | undefined =>
    step.entries.find((entry) => entry.binding === binding);
  const [first, second, result] = [at(a, 2), at(b, 2), at(c, 2)];
  if (!first || !second || !result || rows !== b.fusible.rows || a.workgroups !== b.workgroups) return false;
  const sources = [at(c, 0), at(c, 1)];
  const isOf = (product: BufferEntry): boolean => sources.some((entry) => entry && isSame(entry, product));
  const given = [...a.entries, ...b.entries].filter((entry) => entry !== first && entry !== second);
  return (
    isOf(first) &&
    isOf(second) &&
    result.resource.size === FLOAT_BYTES * rows * a.workgroups &&
    areApart(a, b) &&
    // Other workgroups still read these.
    !given.some((entry) => overlap(entry, result)) &&
    [first, second].every((entry) => isSame(entry, result) || !overlap(entry, result))
  );
}

export function isSame({ resource: a }: BufferEntry, { resource: b }: BufferEntry): boolean {
  return a.buffer === b.buffer && (a.offset ?? 0) === (b.offset ?? 0) && a.size === b.size;
}

export function overlap({ resource: a }: BufferEntry, { resource: b }: BufferEntry): boolean {
  const [from, other] = [a.offset ?? 0, b.offset ?? 0];
  return a.buffer === b.buffer && from < other + (b.size ?? Infinity) && other < from + (a.size ?? Infinity);
}
