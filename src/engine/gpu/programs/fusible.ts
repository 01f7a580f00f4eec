import { canBePart } from "./fused-program.ts";
import { readProgram, type WgslProgram, writtenBindings } from "./wgsl-program.ts";

/** What a program does, as far as it matters for what it can be fused with. */
export interface Fusible {
  readonly kind: "product" | "activation" | "cache-write" | "addition" | "norm" | "rotation";
  readonly program: WgslProgram;
  /** Bindings that it writes, but for those that others may write at the same time. */
  readonly writes: readonly number[];
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

/** What of llama.cpp's programs can be fused; undefined for the others. */
export function readFusible(code: string): Fusible | undefined {
  const program = readProgram(code);
  if (!program || !canBePart(program)) return undefined;
  const kind = kindOf(program);
  if (!kind) return undefined;
  // Of one column: with more of them, a workgroup's rows lie apart.
  const rows = kind === "product" ? /array<array<f32, (\d+)>, 1>/.exec(program.code)?.[1] : "0";
  return rows === undefined
    ? undefined
    : { kind, program, writes: writtenBindings(program), rows: Number(rows) };
}

function kindOf({ names, bindings, code }: WgslProgram): Fusible["kind"] | undefined {
  const has = (...all: readonly string[]): boolean => all.every((name) => names.includes(name));
  const storage = bindings.filter(({ space }) => space.startsWith("storage")).length;
  if (has("accumulate_vec_dot")) return storage === 3 ? "product" : undefined;
  if (has("a_value", "b_value")) return storage === 3 ? "activation" : undefined;
  if (has("error", "idx")) return storage === 4 ? "cache-write" : undefined;
  if (has("src1_index") && /return a \+ b;/.test(code)) return "addition";
  if (has("rn_src", "mul_src")) return "norm";
  return has("rope_yarn") ? "rotation" : undefined;
}

export function entryAt({ entries }: Step, binding: number): BufferEntry | undefined {
  return entries.find((entry) => entry.binding === binding);
}

/** What a step writes. */
export function writtenBy(step: Step): BufferEntry[] {
  return step.entries.filter(({ binding }) => step.fusible.writes.includes(binding));
}

/** One writes what the other reads or writes. */
export function areInOrder(a: Step, b: Step): boolean {
  const touches = (writer: Step, other: Step): boolean =>
    writtenBy(writer).some((written) => other.entries.some((entry) => overlap(written, entry)));
  return touches(a, b) || touches(b, a);
}

export function isSame({ resource: a }: BufferEntry, { resource: b }: BufferEntry): boolean {
  return a.buffer === b.buffer && (a.offset ?? 0) === (b.offset ?? 0) && a.size === b.size;
}

export function overlap({ resource: a }: BufferEntry, { resource: b }: BufferEntry): boolean {
  const [from, other] = [a.offset ?? 0, b.offset ?? 0];
  return a.buffer === b.buffer && from < other + (b.size ?? Infinity) && other < from + (a.size ?? Infinity);
}
