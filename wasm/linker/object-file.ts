import { customSection, KIND, parseModule, SECTION, type WasmModule } from "./wasm-module.ts";
import type { ByteReader } from "./byte-reader.ts";

/** Kinds of symbols and relocations: WebAssembly tool conventions, Linking.md. */
const SYMBOL = { function: 0, data: 1, global: 2, section: 3, tag: 4, table: 5 } as const;
const RELOCATION = { functionIndex: 0, typeIndex: 6, globalIndex: 7 } as const;
const SYMBOL_TABLE = 8;
const FLAG_UNDEFINED = 0x10;
const FLAG_EXPLICIT_NAME = 0x40;

export interface ObjectSymbol {
  readonly kind: number;
  readonly name: string;
  readonly defined: boolean;
  /** Index in the object's own index space; absent for data and sections. */
  readonly index: number | undefined;
}

interface Relocation {
  /** Offset of the padded number in the code section's content. */
  readonly offset: number;
  readonly target:
    | { readonly kind: "function"; readonly symbol: ObjectSymbol }
    | { readonly kind: "global"; readonly symbol: ObjectSymbol }
    | { readonly kind: "type"; readonly index: number };
}

/** A relocatable object as clang writes it, restricted to what a kernel may use: code and nothing else. */
export interface ObjectFile {
  readonly module: WasmModule;
  readonly symbols: readonly ObjectSymbol[];
  readonly relocations: readonly Relocation[];
}

/**
 * Parses a clang object file.
 * @throws TypeError when it holds data segments, tables or relocations that the linker does not support
 */
export function parseObject(bytes: Uint8Array): ObjectFile {
  const module = parseModule(bytes);
  const linking = customSection(module, "linking");
  if (!linking) throw new TypeError("not a relocatable object: it has no linking section");
  const symbols = parseSymbols(linking, module);
  return { module, symbols, relocations: parseRelocations(module, symbols) };
}

function parseSymbols(linking: ByteReader, module: WasmModule): ObjectSymbol[] {
  linking.uleb();
  const symbols: ObjectSymbol[] = [];
  while (!linking.done) {
    const type = linking.u8();
    const end = linking.uleb() + linking.offset;
    if (type === SYMBOL_TABLE) {
      for (let count = linking.uleb(); count > 0; count--) symbols.push(parseSymbol(linking, module));
    }
    linking.offset = end;
  }
  return symbols;
}

function parseSymbol(reader: ByteReader, module: WasmModule): ObjectSymbol {
  const kind = reader.u8();
  const flags = reader.uleb();
  const defined = (flags & FLAG_UNDEFINED) === 0;
  if (kind === SYMBOL.section) {
    reader.uleb();
    return { kind, name: "", defined, index: undefined };
  }
  if (kind === SYMBOL.data)
    throw new TypeError(`data symbol ${reader.name()}: kernels may have no data segments`);
  const index = reader.uleb();
  const named = defined || (flags & FLAG_EXPLICIT_NAME) !== 0;
  return { kind, defined, index, name: named ? reader.name() : importedName(module, kind, index) };
}

function importedName(module: WasmModule, kind: number, index: number): string {
  const importKind =
    kind === SYMBOL.function ? KIND.function : kind === SYMBOL.global ? KIND.global : undefined;
  const entry = module.imports.filter((candidate) => candidate.kind === importKind)[index];
  if (!entry) throw new TypeError(`symbol of kind ${kind} with index ${index} has no import`);
  return entry.name;
}

function parseRelocations(module: WasmModule, symbols: readonly ObjectSymbol[]): Relocation[] {
  if (customSection(module, "reloc.DATA")) throw new TypeError("kernels may have no data segments");
  const reader = customSection(module, "reloc.CODE");
  if (!reader) return [];
  const section = module.sections[reader.uleb()];
  if (section?.id !== SECTION.code) throw new TypeError("reloc.CODE does not belong to the code section");
  return Array.from({ length: reader.uleb() }, () => {
    const type = reader.u8();
    const offset = reader.uleb();
    const index = reader.uleb();
    if (type === RELOCATION.typeIndex) return { offset, target: { kind: "type", index } };
    const symbol = symbols[index];
    if (!symbol) throw new TypeError(`relocation names symbol ${index}, which is not there`);
    if (type === RELOCATION.functionIndex) return { offset, target: { kind: "function", symbol } };
    if (type === RELOCATION.globalIndex) return { offset, target: { kind: "global", symbol } };
    throw new TypeError(`relocation of type ${type} for ${symbol.name} is not supported`);
  });
}

/** Offset of the code section's content in an object file: relocation offsets count from it. */
export function codeOffset(object: ObjectFile): number {
  const section = object.module.sections.find(({ id }) => id === SECTION.code);
  if (!section) throw new TypeError("the object has no code");
  return section.start;
}
