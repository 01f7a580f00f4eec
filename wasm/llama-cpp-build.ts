/** Build of llama.cpp in @wllama/wllama's WebAssembly, which everything in this folder was made for. */
export const LLAMA_CPP_BUILD = "b11364";
