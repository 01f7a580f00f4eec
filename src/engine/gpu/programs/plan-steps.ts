import { areInOrder, type BufferEntry, entryAt, isSame, overlap, type Step, writtenBy } from "./fusible.ts";
import { type Block, canRunPerRow, type FusedPart } from "./wgsl-program.ts";

interface Plan {
  /** The steps, with the buffers that they bind when fused. */
  readonly steps: readonly Step[];
  /** Blocks of a stage run in parallel, after the previous stage. */
  readonly stages: readonly (readonly Block[])[];
}

/** Product of the queries, the keys or the values, with the steps that process its result. */
interface Projection {
  readonly product: number;
  readonly addition: number | undefined;
  readonly norm: number | undefined;
  readonly rotation: number | undefined;
  /** The number after its last step. */
  readonly end: number;
}

/** Bytes of a number. */
const FLOAT_BYTES = 4;

/** Maximum of workgroups that one workgroup computes one after the other. */
const MAX_CHAINED = 16;

/** Maximum steps of a plan: attention's projections with biases, norms and rotations, and the writes to the KV cache. */
export const MAX_PLANNED_STEPS = 14;

/** Plans how some of the first steps can run in fewer programs; undefined if they cannot. */
export function planSteps(given: readonly (Step | undefined)[]): Plan | undefined {
  const unknown = given.indexOf(undefined);
  const steps = given.slice(0, unknown < 0 ? undefined : unknown).filter((step) => step !== undefined);
  return planActivation(steps) ?? planNorm(steps) ?? planProjections(steps);
}

/** Two products and the activation of both: a workgroup computes the same rows of both. */
function planActivation(steps: readonly Step[]): Plan | undefined {
  const [a, b, c] = steps;
  if (!a || !b || !c || kindsOf([a, b, c]) !== "product product activation" || !isRowwise([a, b], c))
    return undefined;
  return planned([a, b, c], [[{ how: "rows", parts: [0, 1, 2] }]]);
}

/** An addition and a norm of one row. */
function planNorm(steps: readonly Step[]): Plan | undefined {
  const [a, b] = steps;
  if (!a || !b || kindsOf([a, b]) !== "addition norm") return undefined;
  return b.workgroups === 1 && isChain(a, b)
    ? planned([a, b], [[{ how: "chain", parts: [0, 1] }]])
    : undefined;
}

/** Products with biases, then norms, then rotations and writes to the cache, as many as can be. */
function planProjections(steps: readonly Step[]): Plan | undefined {
  const all = readProjections(steps);
  const end = all.at(-1)?.end ?? 0;
  let writes = 0;
  while (steps[end + writes]?.fusible.kind === "cache-write") writes++;
  for (const count of [...all.keys()].map((at) => all.length - at)) {
    const projections = all.slice(0, count);
    const upTo = projections.at(-1)?.end ?? 0;
    for (const some of count === all.length && writes > 0 ? [writes, 0] : [0]) {
      const plan = planStages(steps.slice(0, upTo + some), projections, upTo);
      if (plan) return plan;
    }
  }
  return all.length === 0 ? planStages(steps.slice(0, Math.min(2, writes)), [], 0) : undefined;
}

function readProjections(steps: readonly Step[]): Projection[] {
  const found: Projection[] = [];
  let at = 0;
  const take = (kind: Step["fusible"]["kind"]): number | undefined =>
    steps[at]?.fusible.kind === kind ? at++ : undefined;
  for (let product = take("product"); product !== undefined; product = take("product")) {
    const [multiply, next] = [steps[product], steps[at]];
    const hasBias = multiply && next && isRowwise([multiply], next);
    found.push({
      product,
      addition: hasBias ? take("addition") : undefined,
      norm: take("norm"),
      rotation: take("rotation"),
      end: at,
    });
  }
  return found;
}

function alone(part: number): Block {
  return { how: "alone", parts: [part] };
}

/** @param firstWrite index of the first write to the cache; all later steps are writes, too */
function planStages(
  given: readonly Step[],
  projections: readonly Projection[],
  firstWrite: number,
): Plan | undefined {
  const steps = moveQueries(given, projections);
  const writes = [...steps.keys()].slice(firstWrite);
  const products: Block[] = [];
  const norms: Block[] = [];
  const last: Block[] = [];
  for (const { product, addition, norm, rotation } of projections) {
    products.push(addition === undefined ? alone(product) : { how: "rows", parts: [product, addition] });
    if (norm !== undefined) norms.push(alone(norm));
    if (rotation === undefined) continue;
    const at = writes.findIndex((write) => isChain(steps[rotation], steps[write]));
    if (at < 0) last.push(alone(rotation));
    else last.push({ how: "chain", parts: [rotation, ...writes.splice(at, 1)] });
  }
  const stages = [products, norms, [...last, ...writes.map(alone)]].filter((blocks) => blocks.length > 0);
  return stages.length < steps.length ? planned(steps, stages) : undefined;
}

/** True if the second step depends on the first, and both are small and have the same number of threads. */
function isChain(a: Step | undefined, b: Step | undefined): boolean {
  return (
    a !== undefined &&
    b !== undefined &&
    areInOrder(a, b) &&
    a.fusible.program.threads === b.fusible.program.threads &&
    a.workgroups + b.workgroups <= MAX_CHAINED
  );
}

/**
 * Moves the results of products to the output buffer of their rotation or norm. llama.cpp's allocator reuses the buffer of
 * the unrotated queries for the values, so the product of the values would have to wait for the rotation. The move is
 * possible if a later step overwrites the old buffer, which shows that nothing else reads it.
 */
function moveQueries(given: readonly Step[], projections: readonly Projection[]): readonly Step[] {
  const steps = [...given];
  for (const { product, addition, norm, rotation } of projections) {
    const next = norm ?? rotation;
    const [multiply, consume] = [given[product], given[next ?? -1]];
    const [from] = multiply ? writtenBy(multiply) : [];
    const [to] = consume ? writtenBy(consume) : [];
    if (next === undefined || !multiply || !consume || !from || !to || isSame(from, to)) continue;
    const size = FLOAT_BYTES * multiply.fusible.rows * multiply.workgroups;
    if (from.resource.size !== size || to.resource.size !== size) continue;
    if (!consume.entries.some((entry) => isSame(entry, from))) continue;
    if (!isOverwrittenNext(from, given.slice(next + 1))) continue;
    const moved = [product, addition, next].filter((at) => at !== undefined);
    const before = [product, addition].flatMap((at) => given[at ?? -1]?.entries ?? []);
    if (before.some((entry) => overlap(entry, to))) continue;
    for (const at of moved) {
      const step = given[at];
      if (step) steps[at] = withMoved(step, from, to);
    }
  }
  return steps;
}

/** True if the next step that uses this buffer is a product that overwrites it without reading it. */
function isOverwrittenNext(place: BufferEntry, steps: readonly Step[]): boolean {
  const next = steps.find(({ entries }) => entries.some((entry) => overlap(entry, place)));
  if (next?.fusible.kind !== "product") return false;
  const written = writtenBy(next);
  return next.entries.every((entry) => written.includes(entry) || !overlap(entry, place));
}

function withMoved(step: Step, from: BufferEntry, { resource }: BufferEntry): Step {
  const move = (entry: BufferEntry): BufferEntry =>
    isSame(entry, from) ? { binding: entry.binding, resource } : entry;
  return { ...step, entries: step.entries.map(move) };
}

/** True if the last step computes each number from the same index of all products, which have equal numbers of workgroups. */
function isRowwise(products: readonly Step[], last: Step): boolean {
  const { fusible, workgroups } = products[0] ?? last;
  const { program } = last.fusible;
  const size = FLOAT_BYTES * fusible.rows * workgroups;
  const bound = program.bindings
    .filter(({ space }) => space.startsWith("storage"))
    .map(({ binding }) => entryAt(last, binding));
  const results = products.flatMap(writtenBy);
  const given = products.flatMap(({ entries }) => entries).filter((entry) => !results.includes(entry));
  return (
    canRunPerRow(program) &&
    // One thread computes each row.
    fusible.rows <= fusible.program.threads &&
    products.every(
      (each) =>
        each.fusible.rows === fusible.rows &&
        each.fusible.program.threads === fusible.program.threads &&
        each.workgroups === workgroups,
    ) &&
    bound.every((entry) => entry?.resource.size === size) &&
    results.every((result) => bound.some((entry) => entry && isSame(entry, result))) &&
    writtenBy(last).every(
      (written) =>
        // Other workgroups still read these.
        !given.some((entry) => overlap(entry, written)) &&
        results.every((result) => isSame(result, written) || !overlap(result, written)),
    )
  );
}

/** Returns the plan if it preserves the order of all dependent steps. */
function planned(steps: readonly Step[], stages: Plan["stages"]): Plan | undefined {
  const places = new Map<number, { readonly stage: number; readonly block: Block }>();
  for (const [stage, blocks] of stages.entries())
    for (const block of blocks) for (const part of block.parts) places.set(part, { stage, block });
  for (const [at, step] of steps.entries()) {
    for (const [before, other] of steps.slice(0, at).entries()) {
      const [a, b] = [places.get(before), places.get(at)];
      if (!a || !b || !areInOrder(other, step) || a.stage < b.stage) continue;
      const areProducts = other.fusible.kind === "product" && step.fusible.kind === "product";
      if (a.block !== b.block || areProducts) return undefined;
    }
  }
  return { steps, stages };
}

function kindsOf(steps: readonly Step[]): string {
  return steps.map(({ fusible }) => fusible.kind).join(" ");
}

export interface PackedProgram {
  /** Indices of its steps in the plan. */
  readonly steps: readonly number[];
  readonly blocks: readonly Block[];
  readonly parts: readonly FusedPart[];
  readonly entries: readonly BufferEntry[];
  readonly counts: readonly number[];
  readonly workgroups: number;
}

interface PackLimits {
  readonly storageBuffers: number;
  readonly workgroups: number;
}

/** Packs a plan into as few programs as the limits allow; undefined if they would not be fewer than the steps. */
export function packPlan({ steps, stages }: Plan, limits: PackLimits): PackedProgram[] | undefined {
  const programs: PackedProgram[] = [];
  for (const stage of stages) {
    let blocks: Block[] = [];
    for (const block of stage) {
      const joined = programOf(steps, [...blocks, block], limits);
      const program = joined ?? programOf(steps, [block], limits);
      if (!program) return undefined;
      if (joined && blocks.length > 0) programs.pop();
      blocks = joined ? [...blocks, block] : [block];
      programs.push(program);
    }
  }
  return programs.length < steps.length ? programs : undefined;
}

function programOf(
  all: readonly Step[],
  blocks: readonly Block[],
  limits: PackLimits,
): PackedProgram | undefined {
  const numbers = blocks.flatMap(({ parts }) => parts);
  const steps = numbers.map((at) => all[at]).filter((step) => step !== undefined);
  const bound = shareBindings(steps);
  const workgroups = blocks
    .map(({ how, parts }) => (how === "chain" ? 1 : (all[parts[0] ?? 0]?.workgroups ?? 0)))
    .reduce((sum, each) => sum + each, 0);
  const threads = new Set(blocks.map(({ parts: [first = 0] }) => all[first]?.fusible.program.threads));
  if (threads.size > 1) return undefined;
  if (!bound || bound.storage > limits.storageBuffers || workgroups > limits.workgroups) return undefined;
  return {
    steps: numbers,
    blocks: blocks.map(({ how, parts }) => ({ how, parts: parts.map((part) => numbers.indexOf(part)) })),
    parts: bound.parts,
    entries: bound.entries,
    counts: steps.map(({ workgroups: own }) => own),
    workgroups,
  };
}

interface SharedBindings {
  readonly parts: readonly FusedPart[];
  readonly entries: readonly BufferEntry[];
  /** Number of storage buffers. */
  readonly storage: number;
}

/**
 * Merges the bindings of all parts of a program. WebGPU does not allow a range to be bound twice for writing, so equal
 * bindings of two parts become one. Returns undefined if that is impossible.
 */
function shareBindings(steps: readonly Step[]): SharedBindings | undefined {
  const entries: { readonly entry: BufferEntry; readonly type: string; readonly isStorage: boolean }[] = [];
  const parts: FusedPart[] = [];
  for (const { fusible, entries: own } of steps) {
    const slots = new Map<number, number>();
    const vectors = new Set<number>();
    for (const { binding, space, type } of fusible.program.bindings) {
      const entry = own.find((each) => each.binding === binding);
      if (!entry) return undefined;
      const isStorage = space.startsWith("storage");
      const same = isStorage ? entries.findIndex((each) => each.isStorage && isSame(each.entry, entry)) : -1;
      if (same >= 0) {
        const isRead = !fusible.writes.includes(binding);
        if (isRead && type === "array<vec4<f32>>" && entries[same]?.type === "array<f32>")
          vectors.add(binding);
        else if (entries[same]?.type !== type) return undefined;
        slots.set(binding, same);
        continue;
      }
      if (isStorage && entries.some((each) => each.isStorage && overlap(each.entry, entry))) return undefined;
      slots.set(binding, entries.length);
      entries.push({ entry, type, isStorage });
    }
    parts.push({ program: fusible.program, slots, vectors, rows: fusible.rows });
  }
  return {
    parts,
    entries: entries.map(({ entry: { resource } }, binding) => ({ binding, resource })),
    storage: entries.filter(({ isStorage }) => isStorage).length,
  };
}
