import { setFlagsFromString } from "node:v8";

/**
 * Index of ggml_graph_compute_thread in the WebAssembly that @wllama/wllama ships and in what is made of it. Nearly all
 * operators have been copied into it, so it has 308 KB, and to optimise it keeps a processor busy for about a second. V8
 * would begin that with the first steps of the first prompt, which then shares the processor's caches and units.
 */
export const GRAPH_FUNCTION = 3053;

/** With a smaller model little is ever computed, and two processors start about a second later for it. */
export const WORTH_BYTES = 64 * 1024 * 1024;

/**
 * Has V8 optimise that function in a thread of its own while the model is read. Must come before the WebAssembly is
 * compiled.
 * @param modelBytes size of the model's files
 */
export function compileEarly(modelBytes: number): void {
  if (modelBytes >= WORTH_BYTES) setFlagsFromString(`--wasm-eager-tier-up-function=${GRAPH_FUNCTION}`);
}
