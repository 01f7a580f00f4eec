import { readFileSync } from "node:fs";
import { STOCK_WASM_PATH } from "../../src/engine/engine-image.ts";
import { IMAGE_HEAP_BYTES, type StockFunction } from "../../wasm/changes.ts";
import { buildEngineImage } from "../../wasm/engine-image.ts";
import { link } from "../../wasm/linker/link.ts";
import { FUNCTIONS } from "../../wasm/llama-cpp-build.ts";
import { hostMemory, KERNELS } from "./kernel-host-module.ts";

/** Pages of the stock module's memory: initial and maximum. */
const STOCK_PAGES = { first: 2048, most: 65_536 } as const;
const IMAGE_PAGES = IMAGE_HEAP_BYTES / 65_536;

/** llama.cpp's whole WebAssembly, without a script: what it imports does nothing. */
export interface WholeModule {
  readonly view: DataView;
  readonly table: { readonly set: (at: bigint, value: unknown) => void };
  allocate(bytes: number): number;
  /** Calls the function, or what stands in its place. */
  call(...values: (bigint | number)[]): unknown;
}

interface Exports {
  readonly malloc: (bytes: bigint) => bigint;
  readonly called: (...values: (bigint | number)[]) => unknown;
  readonly ["__wasm_call_ctors"]: () => void;
  readonly ["__indirect_function_table"]: WholeModule["table"];
}

/**
 * The module as the package ships it, and the image that engines run.
 * @param name function that is called in both
 */
export async function wholeModules(name: StockFunction): Promise<{ stock: WholeModule; image: WholeModule }> {
  const bytes = readFileSync(STOCK_WASM_PATH);
  const stock = await start(bytes, STOCK_PAGES.most, name);
  const image = await start(await buildEngineImage(bytes, readFileSync(KERNELS)), IMAGE_PAGES, name);
  return { stock, image };
}

async function start(bytes: Uint8Array, maximum: number, name: StockFunction): Promise<WholeModule> {
  const module = await WebAssembly.compile(link(bytes, { exports: { called: FUNCTIONS[name] } }));
  const memory = hostMemory(STOCK_PAGES.first, { maximum, shared: true });
  const imports: Record<string, Record<string, unknown>> = {};
  for (const each of WebAssembly.Module.imports(module)) {
    (imports[each.module] ??= {})[each.name] = each.kind === "memory" ? memory : () => 0;
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const instance = await WebAssembly.instantiate(module, imports as WebAssembly.Imports);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const exports = instance.exports as unknown as Exports;
  const { malloc, called, __wasm_call_ctors: construct, __indirect_function_table: table } = exports;
  construct();
  return {
    view: new DataView(memory.buffer),
    table,
    allocate: (size) => Number(malloc(BigInt(size))),
    call: (...values) => called(...values),
  };
}
