import { ServiceError } from "../../errors/service-error.ts";

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

/** llama.cpp's messages when a chat template fails, during a load or for a request. */
const TEMPLATE_FAILED =
  /generate parser for this template|chat template parsing error|common_chat_templates_init|failed to initialize chat template|Jinja Exception|While executing \w+ at line/;

/** The template rejects its input with a message that its author wrote for the user. */
const REFUSAL = /Jinja Exception: (.{1,300})/;

/** The reason of the template engine: the last or only line of its report. */
const REASON = /^(?:Error|common_chat_templates_init: error): (.{1,300})/m;

const STACK_OVERFLOW = /Maximum call stack size exceeded/;

const ADVICE = "Replace it with TEMPLATE in a Modelfile.";

/**
 * The error for a failed chat template; undefined when the text is about something else.
 * @param text llama.cpp's log
 * @param during "load": the template is unusable; "request": it fails for this request
 */
export function templateFailure(text: string, during: "load" | "request"): ServiceError | undefined {
  if (!TEMPLATE_FAILED.test(text)) return undefined;
  if (OUT_OF_MEMORY.test(text)) return templateTooLarge();
  const refusal = REFUSAL.exec(text)?.[1];
  if (refusal !== undefined && during === "request") {
    return new ServiceError("invalid_parameter", `The model's chat template rejects the request: ${refusal}`);
  }
  const reason = refusal ?? REASON.exec(text)?.[1];
  const why = reason === undefined || isInternal(reason) ? "" : `: ${reason.replace(/\.$/, "")}`;
  return during === "request"
    ? new ServiceError("invalid_parameter", `The model's chat template cannot render this request${why}.`)
    : new ServiceError("invalid_template", `The model's chat template cannot be used${why}. ${ADVICE}`);
}

/** The error for a template that overflowed the stack; undefined when the text is about something else. */
export function templateTooDeep(text: string): ServiceError | undefined {
  if (!STACK_OVERFLOW.test(text)) return undefined;
  return new ServiceError(
    "invalid_template",
    `The model's chat template is nested too deeply or recurses endlessly. ${ADVICE}`,
  );
}

function templateTooLarge(): ServiceError {
  return new ServiceError(
    "invalid_template",
    `The model's chat template needs more memory than the model has. ${ADVICE}`,
  );
}

/** @param seconds how long it ran */
export function templateTooSlow(seconds: number): ServiceError {
  return new ServiceError(
    "invalid_template",
    `The model's chat template did not finish within ${Math.round(seconds)} s, so the model's engine was stopped. ${ADVICE}`,
  );
}
