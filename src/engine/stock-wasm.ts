import { fileURLToPath } from "node:url";

/** llama.cpp's WebAssembly as the package ships it. */
export const STOCK_WASM_PATH = fileURLToPath(import.meta.resolve("@wllama/wllama/esm/wasm/wllama.wasm"));
