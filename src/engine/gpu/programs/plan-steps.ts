import { type Block, canBeOfRows } from "./fused-program.ts";
import { areInOrder, type BufferEntry, entryAt, isSame, overlap, type Step, writtenBy } from "./fusible.ts";

/** How steps that follow each other run in fewer programs. */
export interface Plan {
  /** The steps, with the buffers that they bind then. */
  readonly steps: readonly Step[];
  /** Blocks of a stage run beside each other, when the stage before is done. */
  readonly stages: readonly (readonly Block[])[];
}

/** A product with what is done to its result: of the queries, the keys or the values. */
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

/** More workgroups than this are not computed one after the other. */
const MOST_CHAINED = 16;

/** Most steps that are looked at: those of the projections of attention, with biases and norms, and of the writes to the cache. */
export const MOST_PLANNED = 14;

/** How some of the first steps can run in fewer programs; undefined: they cannot. */
export function planSteps(given: readonly (Step | undefined)[]): Plan | undefined {
  const unknown = given.indexOf(undefined);
  const steps = given.slice(0, unknown < 0 ? undefined : unknown).filter((step) => step !== undefined);
  return planActivation(steps) ?? planNorm(steps) ?? planProjections(steps);
}

/** Two products and the activation of both: a workgroup computes the same rows of both. */
function planActivation(steps: readonly Step[]): Plan | undefined {
  const [a, b, c] = steps;
  if (!a || !b || !c || kindsOf([a, b, c]) !== "product product activation" || !isOfRows([a, b], c))
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
    const hasBias = multiply && next && isOfRows([multiply], next);
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

/** @param firstWrite where writes to the cache begin, which all other steps are not */
function planStages(
  given: readonly Step[],
  projections: readonly Projection[],
  firstWrite: number,
): Plan | undefined {
  const steps = keepQueries(given, projections);
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

/** The second step needs the first, and both are small and have as many threads. */
function isChain(a: Step | undefined, b: Step | undefined): boolean {
  return (
    a !== undefined &&
    b !== undefined &&
    areInOrder(a, b) &&
    a.fusible.program.threads === b.fusible.program.threads &&
    a.workgroups + b.workgroups <= MOST_CHAINED
  );
}

/**
 * llama.cpp puts values where queries were before they were rotated. Where a later step shows that these are not needed any more,
 * a product puts them where the rotation or the norm does, so that the later step need not wait.
 */
function keepQueries(given: readonly Step[], projections: readonly Projection[]): readonly Step[] {
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
    if (!isFree(from, given.slice(next + 1))) continue;
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

/** The next step that has to do with what is there is a product that puts its result there, and reads nothing of it. */
function isFree(place: BufferEntry, steps: readonly Step[]): boolean {
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

/** The last step computes each number from the same one of all products, which have as many workgroups. */
function isOfRows(products: readonly Step[], last: Step): boolean {
  const { fusible, workgroups } = products[0] ?? last;
  const { program } = last.fusible;
  const size = FLOAT_BYTES * fusible.rows * workgroups;
  const bound = program.bindings
    .filter(({ space }) => space.startsWith("storage"))
    .map(({ binding }) => entryAt(last, binding));
  const results = products.flatMap(writtenBy);
  const given = products.flatMap(({ entries }) => entries).filter((entry) => !results.includes(entry));
  return (
    canBeOfRows(program) &&
    // Each row is computed by a thread.
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

/** The plan, if it keeps the order of steps of which one writes what the other reads or writes. */
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
