import { concatBytes, patchPaddedUleb, section, sized, sizedText, uleb, vector } from "./byte-writer.ts";
import { codeOffset, parseObject, type ObjectFile, type ObjectSymbol } from "./object-file.ts";
import { splice, type Splice } from "./splice.ts";
import { functionTypeText, KIND, parseModule, SECTION, type WasmModule } from "./wasm-module.ts";

export interface LinkPlan {
  /** Kernels to append, as a clang object. */
  readonly object?: Uint8Array;
  /** Kernel name → index of the function whose body it takes. */
  readonly replace?: Readonly<Record<string, number>>;
  /** Name under which kernels call a displaced original → index of that function. */
  readonly originals?: Readonly<Record<string, number>>;
  /** Name under which kernels call a function of the module → its index. */
  readonly imports?: Readonly<Record<string, number>>;
  /** Inlined code in functions of the module to replace by calls of kernels. */
  readonly splices?: readonly Splice[];
  /** Exports to add: name → function index in the module. */
  readonly exports?: Readonly<Record<string, number>>;
  /** Kernels to export under their names. */
  readonly exportedKernels?: readonly string[];
  /** New declared maximum of the imported memory, in pages of 64 KiB. */
  readonly memoryMaximum?: number;
}

/**
 * Extends a finished WebAssembly module: appends the kernels of an object file, puts them in the place of chosen
 * functions (keeping the displaced bodies callable) or of code within them, adds exports and raises the memory's
 * maximum. Indices of the module do not move. Custom sections are dropped: they describe the module as it was.
 *
 * @throws TypeError when a name cannot be resolved, types do not agree or the input is malformed
 */
export function link(stock: Uint8Array, plan: LinkPlan): Uint8Array<ArrayBuffer> {
  const module = parseModule(stock);
  const object = plan.object ? parseObject(plan.object) : undefined;
  const layout = layOut(module, object, plan);
  const kernels = object ? relocatedBodies(object, layout) : [];
  const parts: Uint8Array[] = [stock.subarray(0, 8)];
  for (const { id, start, end } of module.sections) {
    if (id === SECTION.custom) continue;
    const content = rewriteSection(id, module, object, layout, kernels, plan) ?? stock.subarray(start, end);
    parts.push(section(id, content));
  }
  return concatBytes(parts);
}

interface Layout {
  /** Index of the first appended function. */
  readonly firstKernel: number;
  /** Replaced functions in the order in which they are appended after the kernels. */
  readonly appendedOriginals: readonly number[];
  /** Index of the function whose body is replaced → index of the kernel. */
  readonly replaced: ReadonlyMap<number, number>;
  readonly typeBase: number;
  functionIndex(symbol: ObjectSymbol): number;
  /** Index that a kernel gets. */
  kernelIndex(name: string): number;
}

function layOut(module: WasmModule, object: ObjectFile | undefined, plan: LinkPlan): Layout {
  const firstKernel = module.importedFunctions + module.functionTypes.length;
  const kernelCount = object?.module.bodies.length ?? 0;
  const originals = Object.entries(plan.originals ?? {});
  const resolved = new Map<string, number>(Object.entries(plan.imports ?? {}));
  for (const [position, [name]] of originals.entries())
    resolved.set(name, firstKernel + kernelCount + position);
  const definedIndex = (symbol: ObjectSymbol): number => {
    const own = (symbol.index ?? -1) - (object?.module.importedFunctions ?? 0);
    if (own < 0) throw new TypeError(`${symbol.name} is not defined in the object`);
    return firstKernel + own;
  };
  const functionIndex = (symbol: ObjectSymbol): number => {
    if (symbol.defined) return definedIndex(symbol);
    const index = resolved.get(symbol.name);
    if (index === undefined) throw new TypeError(`undefined symbol ${symbol.name}`);
    return index;
  };
  const kernelIndex = (name: string): number => {
    const symbol = object?.symbols.find((candidate) => candidate.defined && candidate.name === name);
    if (!symbol) throw new TypeError(`the object defines no ${name}`);
    return definedIndex(symbol);
  };
  const replaced = new Map<number, number>();
  for (const [name, target] of Object.entries(plan.replace ?? {})) {
    const kernel = kernelIndex(name);
    if (object) assertSameType(module, target, object, kernel - firstKernel, name);
    replaced.set(target, kernel);
  }
  return {
    firstKernel,
    appendedOriginals: originals.map(([, index]) => index),
    replaced,
    typeBase: module.typeCount,
    functionIndex,
    kernelIndex,
  };
}

function assertSameType(
  module: WasmModule,
  target: number,
  object: ObjectFile,
  own: number,
  name: string,
): void {
  const stockType = functionTypeText(module, module.functionTypes[target - module.importedFunctions]);
  const kernelType = functionTypeText(object.module, object.module.functionTypes[own]);
  if (stockType !== kernelType) {
    throw new TypeError(
      `${name} has type ${kernelType}, the function ${target} it replaces has ${stockType}`,
    );
  }
}

/** The only global that kernels may touch: the stack pointer, the module's global 0 by convention of the toolchain. */
const STACK_POINTER = { name: "__stack_pointer", index: 0 } as const;

function relocatedBodies(object: ObjectFile, layout: Layout): Uint8Array[] {
  // Not slice(): that of a Buffer shares its memory, and the input must stay as it is.
  const bytes = new Uint8Array(object.module.bytes);
  const base = codeOffset(object);
  for (const { offset, target } of object.relocations) {
    let value: number;
    if (target.kind === "type") value = layout.typeBase + target.index;
    else if (target.kind === "function") value = layout.functionIndex(target.symbol);
    else if (target.symbol.name === STACK_POINTER.name) value = STACK_POINTER.index;
    else throw new TypeError(`kernels may not use the global ${target.symbol.name}`);
    patchPaddedUleb(bytes, base + offset, value);
  }
  return [...parseModule(bytes).bodies];
}

function rewriteSection(
  id: number,
  module: WasmModule,
  object: ObjectFile | undefined,
  layout: Layout,
  kernels: readonly Uint8Array[],
  plan: LinkPlan,
): Uint8Array | undefined {
  if (id === SECTION.import) return rewriteImports(module, plan.memoryMaximum);
  if (id === SECTION.export) {
    const kernelExports = plan.exportedKernels?.map((name) => [name, layout.kernelIndex(name)] as const);
    return rewriteExports(module, { ...plan.exports, ...Object.fromEntries(kernelExports ?? []) });
  }
  if (id === SECTION.type) {
    const added = object?.module;
    return concatBytes([
      uleb(module.typeCount + (added?.typeCount ?? 0)),
      module.typeBytes,
      added?.typeBytes ?? [],
    ]);
  }
  const original = (index: number): number => index - module.importedFunctions;
  if (id === SECTION.function) {
    const kernelTypes = object?.module.functionTypes.map((type) => layout.typeBase + type) ?? [];
    const keptTypes = layout.appendedOriginals.map((index) => module.functionTypes[original(index)]!);
    return vector([...module.functionTypes, ...kernelTypes, ...keptTypes].map(uleb));
  }
  if (id === SECTION.code) {
    const spliced = splice(module, plan.splices ?? [], (name) => layout.kernelIndex(name));
    const bodies = spliced.map((body, position) => {
      const kernel = layout.replaced.get(position + module.importedFunctions);
      return kernel === undefined ? body : kernels[kernel - layout.firstKernel]!;
    });
    const kept = layout.appendedOriginals.map((index) => spliced[original(index)]!);
    return vector([...bodies, ...kernels, ...kept].map(sized));
  }
  return undefined;
}

function rewriteImports(module: WasmModule, maximum: number | undefined): Uint8Array | undefined {
  if (maximum === undefined) return undefined;
  let found = false;
  const entries = module.imports.map((entry) => {
    if (entry.kind !== KIND.memory || entry.limits?.maximum === undefined)
      return module.bytes.subarray(entry.start, entry.end);
    found = true;
    const { limits } = entry;
    const head = module.bytes.subarray(
      entry.start,
      entry.end - uleb(limits.minimum).length - uleb(limits.maximum!).length,
    );
    return concatBytes([head, uleb(limits.minimum), uleb(maximum)]);
  });
  if (!found) throw new TypeError("the module imports no memory with a maximum");
  return vector(entries);
}

function rewriteExports(module: WasmModule, added: Readonly<Record<string, number>>): Uint8Array {
  const entries = Object.entries(added).map(([name, index]) => {
    if (module.exports.some((existing) => existing.name === name))
      throw new TypeError(`${name} is exported already`);
    return { name, kind: KIND.function, index };
  });
  return vector(
    [...module.exports, ...entries].map(({ name, kind, index }) =>
      concatBytes([sizedText(name), [kind], uleb(index)]),
    ),
  );
}
