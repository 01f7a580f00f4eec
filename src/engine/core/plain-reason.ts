/** How V8 words WebAssembly's traps: llama.cpp has reckoned with a figure that it did not check. */
export const WASM_TRAP =
  /\b(?:divide|remainder) by zero|divide result unrepresentable|float unrepresentable|memory access out of bounds|table index is out of bounds|null function or function signature|\bunreachable\b/;

/**
 * Why llama.cpp refuses a file, in words for whoever has the file: what it says itself names its own functions and
 * source files. Each sentence completes "… cannot be used: ".
 */
const SENTENCES: readonly (readonly [RegExp, (match: readonly string[]) => string])[] = [
  // Of the tensors of an adapter, some of which are told like those of a model.
  [/LoRA tensor|lora_a tensor|maybe wrong base model/, () => "an adapter does not fit the model"],
  [/missing tensor '([^']{1,80})'/, ([, name]) => `it lacks the tensor ${name}`],
  [
    /unknown model architecture: '([^']{0,80})'/,
    ([, name]) => `its architecture "${name}" is not one that llama.cpp knows`,
  ],
  [/key not found in model: (\S{1,80})/, ([, key]) => `it lacks the key ${key}`],
  [/key (\S{1,80}) has wrong type/, ([, key]) => `its key ${key} has a value of another type`],
  [
    /(?:key |array )(\S{1,80}) (?:has wrong array length|is not an array|has different)/,
    ([, key]) => `its key ${key} has another length than its other figures ask for`,
  ],
  [
    /tensor '([^']{1,80})' has wrong (?:shape|number|type)/,
    ([, name]) => `its tensor ${name} is of another size than its figures ask for`,
  ],
  [
    /tensor '([^']{1,80})'.*not within the file bounds|tensor '([^']{1,80})' data/,
    ([, a, b]) => `its tensor ${a ?? b} lies beyond the end of the file`,
  ],
  [/wrong number of tensors/, () => "it has tensors that its figures have no place for"],
  [/duplicated? tensor|tensor name|tensor '/, () => "its list of tensors is damaged"],
  [/lora|adapter/i, () => "an adapter does not fit the model"],
  [/clip|mmproj|projector|mtmd/i, () => "the vision projector does not fit the model"],
  [/split/, () => "its shards do not belong together"],
  [/vocab|tokenizer|token_|detokenize|merges|llama-vocab/i, () => "its vocabulary is damaged"],
  [/magic|bad (?:file|version)|gguf_init|gguf\.cpp|gguf\.c/i, () => "its header is damaged"],
  [
    /n_embd|n_head|n_rot|n_layer|hparams|rope|ggml\.c|ggml-|llama-model|llama-graph|llama-kv/i,
    () => "the figures of its header do not fit together",
  ],
  [WASM_TRAP, () => "the figures of its header do not fit together"],
];

/** Fallback for a reason without its own message. */
export const NO_PLAIN_REASON = "llama.cpp cannot work with it";

/** @param text what llama.cpp has logged, the most telling line first */
export function plainReason(text: string): string {
  for (const line of text.split("\n")) {
    for (const [pattern, sentence] of SENTENCES) {
      const match = pattern.exec(line);
      if (match) return sentence(match);
    }
  }
  return NO_PLAIN_REASON;
}

/** The names of llama.cpp's functions and sources, C++'s exceptions, WebAssembly's traps. */
const INTERNALS =
  /GGML_|\/source\/|\.(?:c|cc|cpp|h|hpp):\d+|\b(?:ggml|gguf|llama|common|srv|mtmd|clip)_\w+\s*[:(]|\bstd::|wasm-function|Aborted\(|RuntimeError|unreachable|\(ABORT\)/;

/** Whether a text is one that only llama.cpp's developers can read. */
export function isInternal(text: string): boolean {
  return INTERNALS.test(text);
}

/**
 * Why an engine ended, for those whose request ended with it.
 * @param reason as the engine or its last line of output has it
 */
export function plainEnd(reason: string): string {
  if (OUT_OF_MEMORY.test(reason)) return "the model ran out of the memory that it was given";
  if (/Maximum call stack size exceeded/.test(reason)) return "what it worked on was nested too deeply";
  return isInternal(reason) ? "llama.cpp failed an internal check; see the log for its message" : reason;
}

export const OUT_OF_MEMORY =
  /out of memory|insufficient memory|\bOOM\b|enlarge memory|bad_alloc|failed to allocate|unable to allocate|Cannot allocate|ctx->mem_buffer != NULL|Cannot allocate WebAssembly/i;
