import { asPart, slotName, type Slots, type WgslProgram } from "./wgsl-program.ts";

/**
 * How the parts of a fused program follow each other.
 *
 * - `beside`: they do not depend on each other; the first workgroups compute the first part, the others the second.
 * - `rows`: each workgroup computes the same rows in both products, and then, of those rows, the third part.
 * - `chain`: one workgroup computes all of the first part, and then the second, which has one workgroup.
 */
export type Form = "beside" | "rows" | "chain";

export interface FusedPart {
  readonly program: WgslProgram;
  readonly slots: Slots;
}

/** Rows of a workgroup of a product; `rows` needs it. */
interface FormOptions {
  readonly rows: number;
}

/** What a built-in value of a part is, for a workgroup of it. */
type Builtins = Readonly<Record<string, string>>;

const THREAD_BUILTINS: Readonly<Record<string, string>> = {
  local_invocation_id: "vec3<u32>",
  subgroup_id: "u32",
  subgroup_invocation_id: "u32",
  num_subgroups: "u32",
  subgroup_size: "u32",
};

/** Built-in values of a part that runs as workgroup `group` of `groups`. */
function builtinsOf({ threads }: WgslProgram, group: string, groups: string): Builtins {
  return {
    ...Object.fromEntries(Object.keys(THREAD_BUILTINS).map((name) => [name, name])),
    workgroup_id: `vec3<u32>(${group}, 0u, 0u)`,
    num_workgroups: `vec3<u32>(${groups}, 1u, 1u)`,
    global_invocation_id: `vec3<u32>(${group} * ${threads}u + local_invocation_id.x, 0u, 0u)`,
  };
}

/** True for a program that takes only built-in values that a part can be given. */
export function canBePart(program: WgslProgram): boolean {
  const known = builtinsOf(program, "", "");
  return program.builtins.every((name) => name in known);
}

/** Number of the uniform with the numbers of workgroups; a form that needs none does not bind it. */
export function countsSlot(parts: readonly FusedPart[]): number {
  return Math.max(...parts.flatMap(({ slots }) => [...slots.values()])) + 1;
}

export function needsCounts(form: Form): boolean {
  return form !== "rows";
}

/** WGSL of the program that computes all of the parts. */
export function fuse(form: Form, parts: readonly FusedPart[], { rows }: FormOptions): string {
  const [{ program: first } = { program: undefined }] = parts;
  if (!first) throw new Error("a fused program has parts");
  const counts = slotName(countsSlot(parts));
  const call = (at: number, builtins: Builtins): string =>
    `main_${at}(${parts[at]?.program.builtins.map((name) => builtins[name]).join(", ") ?? ""});`;
  const run = (at: number, group: string, groups: string): string => {
    const program = parts[at]?.program ?? first;
    return call(at, builtinsOf(program, group, groups));
  };
  const bodies: Record<Form, () => string> = {
    beside: () => `
  if (workgroup_id.x < ${counts}.x) {
    ${run(0, "workgroup_id.x", `${counts}.x`)}
  } else {
    ${run(1, `(workgroup_id.x - ${counts}.x)`, `${counts}.y`)}
  }`,
    rows: () => `
  ${run(0, "workgroup_id.x", "num_workgroups.x")}
  ${run(1, "workgroup_id.x", "num_workgroups.x")}
  storageBarrier();
  workgroupBarrier();
  // Threads without a row are past the end of the third part.
  let row = select(0xffffffffu, workgroup_id.x * ${rows}u + local_invocation_id.x, local_invocation_id.x < ${rows}u);
  ${call(2, { global_invocation_id: "vec3<u32>(row, 0u, 0u)" })}`,
    chain: () => `
  for (var each = 0u; each < ${counts}.x; each++) {
    ${run(0, "each", `${counts}.x`)}
  }
  storageBarrier();
  workgroupBarrier();
  ${run(1, "workgroup_id.x", "1u")}`,
  };
  const threadBuiltins = Object.entries(THREAD_BUILTINS).filter(
    ([name]) =>
      name === "local_invocation_id" || parts.some(({ program }) => program.builtins.includes(name)),
  );
  const parameters = [["workgroup_id", "vec3<u32>"], ["num_workgroups", "vec3<u32>"], ...threadBuiltins];
  return [
    ...new Set([
      "diagnostic(off, subgroup_uniformity);",
      ...parts.flatMap(({ program }) => program.directives),
    ]),
    ...declarations(parts),
    ...(needsCounts(form) ? [declare(countsSlot(parts), "uniform", "vec4<u32>")] : []),
    ...parts.map(({ program, slots }, at) => asPart(program, `_${at}`, slots)),
    `@compute @workgroup_size(${first.threads})`,
    `fn main(${parameters.map(([name, type]) => `@builtin(${name}) ${name}: ${type}`).join(", ")}) {${bodies[form]()}`,
    "}",
  ].join("\n");
}

function declare(slot: number, space: string, type: string): string {
  return `@group(0) @binding(${slot}) var<${space}> ${slotName(slot)}: ${type};`;
}

/** The bindings of all parts, each once. A type that a part declares has its suffix. */
function declarations(parts: readonly FusedPart[]): string[] {
  const declared = new Map<number, string>();
  for (const [at, { program, slots }] of parts.entries()) {
    for (const { binding, space, type } of program.bindings) {
      const slot = slots.get(binding);
      if (slot === undefined || declared.has(slot)) continue;
      declared.set(slot, declare(slot, space, program.names.includes(type) ? `${type}_${at}` : type));
    }
  }
  return [...declared.values()];
}
