/** V8's messages for WebAssembly traps: llama.cpp used a value from the file without checking it. */
export const WASM_TRAP =
  /\b(?:divide|remainder) by zero|divide result unrepresentable|float unrepresentable|memory access out of bounds|table index is out of bounds|null function or function signature|\bunreachable\b/;

/**
 * Why llama.cpp rejects a file, in words for users, because its own messages name functions and source files. Each text
 * completes "… cannot be used: ".
 */
const SENTENCES: readonly (readonly [RegExp, (match: readonly string[]) => string])[] = [
  // Adapters first: some of their messages look like those about a model.
  [/LoRA tensor|lora_a tensor|maybe wrong base model/, () => "an adapter does not fit the model"],
  [/missing tensor '([^']{1,80})'/, ([, name]) => `the tensor ${name} is missing`],
  [
    /unknown model architecture: '([^']{0,80})'/,
    ([, name]) => `llama.cpp does not support its architecture "${name}"`,
  ],
  [/key not found in model: (\S{1,80})/, ([, key]) => `the key ${key} is missing`],
  [/key (\S{1,80}) has wrong type/, ([, key]) => `the value of its key ${key} has the wrong type`],
  [
    /(?:key |array )(\S{1,80}) (?:has wrong array length|is not an array|has different)/,
    ([, key]) => `the value of its key ${key} has the wrong length`,
  ],
  [
    /tensor '([^']{1,80})' has wrong (?:shape|number|type)/,
    ([, name]) => `its tensor ${name} has the wrong size`,
  ],
  [
    /tensor '([^']{1,80})'.*not within the file bounds|tensor '([^']{1,80})' data/,
    ([, a, b]) => `its tensor ${a ?? b} extends beyond the end of the file`,
  ],
  [/wrong number of tensors/, () => "it has the wrong number of tensors"],
  [/duplicated? tensor|tensor name|tensor '/, () => "its list of tensors is damaged"],
  [/lora|adapter/i, () => "an adapter does not fit the model"],
  [/clip|mmproj|projector|mtmd/i, () => "the vision projector does not fit the model"],
  [/split/, () => "its shards do not belong together"],
  [/vocab|tokenizer|token_|detokenize|merges|llama-vocab/i, () => "its vocabulary is damaged"],
  [/magic|bad (?:file|version)|gguf_init|gguf\.cpp|gguf\.c/i, () => "its header is damaged"],
  [
    /n_embd|n_head|n_rot|n_layer|hparams|rope|ggml\.c|ggml-|llama-model|llama-graph|llama-kv/i,
    () => "the values in its header are inconsistent",
  ],
  [WASM_TRAP, () => "the values in its header are inconsistent"],
];

/** Fallback for a reason without its own message. */
export const NO_PLAIN_REASON = "llama.cpp rejected it";

/** @param text llama.cpp's log, the most relevant line first */
export function plainReason(text: string): string {
  for (const line of text.split("\n")) {
    for (const [pattern, sentence] of SENTENCES) {
      const match = pattern.exec(line);
      if (match) return sentence(match);
    }
  }
  return NO_PLAIN_REASON;
}

/** Names of llama.cpp's functions and source files, C++ exceptions, WebAssembly traps. */
const INTERNALS =
  /GGML_|\/source\/|\.(?:c|cc|cpp|h|hpp):\d+|\b(?:ggml|gguf|llama|common|srv|mtmd|clip)_\w+\s*[:(]|\bstd::|wasm-function|Aborted\(|RuntimeError|unreachable|\(ABORT\)/;

/** True when only llama.cpp's developers can understand a text. */
export function isInternal(text: string): boolean {
  return INTERNALS.test(text);
}

/**
 * Why an engine ended, for the clients whose requests failed.
 * @param reason from the engine or its last line of output
 */
export function plainEnd(reason: string): string {
  if (OUT_OF_MEMORY.test(reason)) return "the model ran out of memory";
  if (/Maximum call stack size exceeded/.test(reason)) return "its input was nested too deeply";
  return isInternal(reason) ? "llama.cpp failed an internal check; see the log for its message" : reason;
}

export const OUT_OF_MEMORY =
  /out of memory|insufficient memory|\bOOM\b|enlarge memory|bad_alloc|failed to allocate|unable to allocate|Cannot allocate|ctx->mem_buffer != NULL|Cannot allocate WebAssembly/i;
