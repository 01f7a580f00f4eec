import { readFileSync } from "node:fs";
import { STOCK_WASM_PATH } from "../../src/engine/prepare-engine.ts";
import { IMAGE_HEAP_BYTES } from "../../wasm/changes.ts";
import { buildEngineImage } from "../../wasm/engine-image.ts";
import { link } from "../../wasm/linker/link.ts";
import { FUNCTIONS } from "../../wasm/llama-cpp-build.ts";
import { hostMemory, KERNELS } from "./kernel-host-module.ts";

/** Of the stock module when it starts, and at most. */
const STOCK_PAGES = { first: 2048, most: 65_536 } as const;
const IMAGE_PAGES = IMAGE_HEAP_BYTES / 65_536;

/** A module with one function f(i64) that returns 1. */
const ALWAYS = Uint8Array.from(
  Buffer.from("0061736d0100000001060160017e017f03020100070501016600000a0601040041010b", "hex"),
);

/** Number in the table of a function that says that a buffer is in the host's memory. */
export const IS_HOST = 1n;

/** llama.cpp's whole WebAssembly, of which one function is called. */
export interface MaskModule {
  readonly view: DataView;
  allocate(bytes: number): number;
  /** llama_kv_cache_context::set_input_kq_mask, or what stands in its place. */
  fill(context: number, mask: number, step: number, isCausal: boolean): void;
}

interface Exports {
  readonly malloc: (bytes: bigint) => bigint;
  readonly fill: (context: bigint, mask: bigint, step: bigint, isCausal: number) => void;
  readonly ["__wasm_call_ctors"]: () => void;
  readonly ["__indirect_function_table"]: { readonly set: (at: bigint, value: unknown) => void };
}

/** The module as the package ships it, and the image that engines run. */
export async function maskModules(): Promise<{ stock: MaskModule; image: MaskModule }> {
  const bytes = readFileSync(STOCK_WASM_PATH);
  const stock = await start(bytes, STOCK_PAGES.most);
  const image = await start(await buildEngineImage(bytes, readFileSync(KERNELS)), IMAGE_PAGES);
  return { stock, image };
}

async function start(bytes: Uint8Array, maximum: number): Promise<MaskModule> {
  const added = { fill: FUNCTIONS["llama_kv_cache_context::set_input_kq_mask"] };
  const module = await WebAssembly.compile(link(bytes, { exports: added }));
  const memory = hostMemory(STOCK_PAGES.first, { maximum, shared: true });
  const imports: Record<string, Record<string, unknown>> = {};
  for (const each of WebAssembly.Module.imports(module)) {
    (imports[each.module] ??= {})[each.name] = each.kind === "memory" ? memory : () => 0;
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const instance = await WebAssembly.instantiate(module, imports as WebAssembly.Imports);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const exports = instance.exports as unknown as Exports;
  const { malloc, fill, __wasm_call_ctors: construct, __indirect_function_table: table } = exports;
  construct();
  const always = await WebAssembly.instantiate(ALWAYS);
  // In place of any other: the table cannot grow.
  table.set(IS_HOST, always.instance.exports["f"]);
  return {
    view: new DataView(memory.buffer),
    allocate: (size) => Number(malloc(BigInt(size))),
    fill: (context, mask, step, isCausal) =>
      fill(BigInt(context), BigInt(mask), BigInt(step), isCausal ? 1 : 0),
  };
}
