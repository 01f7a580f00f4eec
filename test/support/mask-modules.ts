import { type WholeModule, wholeModules } from "./whole-modules.ts";

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

/** The module as the package ships it, and the image that engines run. */
export async function maskModules(): Promise<{ stock: MaskModule; image: MaskModule }> {
  const { stock, image } = await wholeModules("llama_kv_cache_context::set_input_kq_mask");
  return { stock: await withBuffers(stock), image: await withBuffers(image) };
}

async function withBuffers(module: WholeModule): Promise<MaskModule> {
  const always = await WebAssembly.instantiate(ALWAYS);
  // In place of any other: the table cannot grow.
  module.table.set(IS_HOST, always.instance.exports["f"]);
  return {
    view: module.view,
    allocate: (bytes) => module.allocate(bytes),
    fill: (context, mask, step, isCausal) => {
      module.call(BigInt(context), BigInt(mask), BigInt(step), isCausal ? 1 : 0);
    },
  };
}
