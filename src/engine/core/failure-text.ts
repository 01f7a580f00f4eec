import { ServiceError } from "../../errors/service-error.ts";

/** V8's messages for WebAssembly traps. They occur if llama.cpp uses a value from the file without a check. */
export const WASM_TRAP =
  /\b(?:divide|remainder) by zero|divide result unrepresentable|float unrepresentable|memory access out of bounds|table index is out of bounds|null function or function signature|\bunreachable\b/;

/**
 * Explanations for users why llama.cpp rejects a file, because its own messages name functions and source files. Each
 * text completes "… cannot be used: ".
 */
const EXPLANATIONS: readonly (readonly [RegExp, (match: readonly string[]) => string])[] = [
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

/** Fallback for a reason that has no explanation. */
export const UNEXPLAINED = "llama.cpp rejected it";

/** Explains why a file cannot be used. @param text llama.cpp's log, the most relevant line first */
export function explainLoadError(text: string): string {
  for (const line of text.split("\n")) {
    for (const [pattern, sentence] of EXPLANATIONS) {
      const match = pattern.exec(line);
      if (match) return sentence(match);
    }
  }
  return UNEXPLAINED;
}

/** Names of llama.cpp's functions and source files, C++ exceptions, WebAssembly traps. */
const INTERNALS =
  /GGML_|\/source\/|\.(?:c|cc|cpp|h|hpp):\d+|\b(?:ggml|gguf|llama|common|srv|mtmd|clip)_\w+\s*[:(]|\bstd::|wasm-function|Aborted\(|RuntimeError|unreachable|\(ABORT\)/;

/** True if a text names internals of llama.cpp, which users do not understand. */
export function isInternalMessage(text: string): boolean {
  return INTERNALS.test(text);
}

/**
 * Explains the end of an engine to the clients whose requests failed.
 * @param reason from the engine, or the last line of its output
 */
export function explainExit(reason: string): string {
  if (OUT_OF_MEMORY.test(reason)) return "the model ran out of memory";
  if (STACK_OVERFLOW.test(reason)) return "its input was nested too deeply";
  return isInternalMessage(reason)
    ? "llama.cpp failed an internal check; see the log for its message"
    : reason;
}

export const OUT_OF_MEMORY =
  /out of memory|insufficient memory|\bOOM\b|enlarge memory|bad_alloc|failed to allocate|unable to allocate|Cannot allocate|ctx->mem_buffer != NULL|Cannot allocate WebAssembly/i;

/** llama.cpp's messages about a chat template that fails, during a load or for a request. */
const TEMPLATE_FAILED =
  /generate parser for this template|chat template parsing error|common_chat_templates_init|failed to initialize chat template|Jinja Exception|While executing \w+ at line/;

/** A message with which the template itself rejects its input. */
const TEMPLATE_EXCEPTION = /Jinja Exception: (.{1,300})/;

/** The error of the template engine, in the last or only line of its report. */
const TEMPLATE_ERROR = /^(?:Error|common_chat_templates_init: error): (.{1,300})/m;

const STACK_OVERFLOW = /Maximum call stack size exceeded/;

/**
 * Returns the error for a failed chat template, or undefined if the text has another subject.
 * @param text llama.cpp's log
 * @param during "load": the template is unusable; "request": it fails for this request
 */
export function templateFailure(text: string, during: "load" | "request"): ServiceError | undefined {
  if (!TEMPLATE_FAILED.test(text)) return undefined;
  if (OUT_OF_MEMORY.test(text)) return invalidTemplate("needs more memory than the model has");
  const exception = TEMPLATE_EXCEPTION.exec(text)?.[1];
  if (exception !== undefined && during === "request") {
    return new ServiceError(
      "invalid_parameter",
      `The model's chat template rejects the request: ${exception}`,
    );
  }
  const reason = exception ?? TEMPLATE_ERROR.exec(text)?.[1];
  const why = reason === undefined || isInternalMessage(reason) ? "" : `: ${reason.replace(/\.$/, "")}`;
  return during === "request"
    ? new ServiceError("invalid_parameter", `The model's chat template cannot render this request${why}.`)
    : invalidTemplate(`cannot be used${why}`);
}

/** Returns the error for a template that has overflowed the stack, or undefined if the text has another subject. */
export function templateTooDeep(text: string): ServiceError | undefined {
  return STACK_OVERFLOW.test(text)
    ? invalidTemplate("is nested too deeply or recurses endlessly")
    : undefined;
}

/** Returns the error for a template that did not finish. @param seconds its time limit */
export function templateTooSlow(seconds: number): ServiceError {
  return invalidTemplate(`did not finish within ${Math.round(seconds)} s, so the model's engine was stopped`);
}

function invalidTemplate(problem: string): ServiceError {
  const advice = "Replace it with TEMPLATE in a Modelfile.";
  return new ServiceError("invalid_template", `The model's chat template ${problem}. ${advice}`);
}
