import type { LogLevel } from "./platform.ts";

/** Lines kept. The first error is often the reason; later ones repeat it for callers further up. */
const KEPT_LINES = 8;

/**
 * Failed assertions, out-of-memory aborts and lost GPUs, which are not logged as errors. Without a GPU llama.cpp always
 * logs that there is no adapter, which is not a failure.
 */
const LAST_WORDS =
  /GGML_ASSERT|Aborted\([^)]|terminating due to|fatal error|ggml_webgpu: (?!failed to get an adapter).*(failed|lost|timed out|exhausted|error)/i;

/** The last line of the report on a failed chat template, which is not logged as an error either. */
const TEMPLATE_REASON = /^Error: /;

/** wllama's stack trace, which says where but not why. */
const STACK_TRACE = /^Stack trace/;

/** Remembers what llama.cpp logged before it failed. */
export class FailureLog {
  #errors: string[] = [];
  #lastWords: string | undefined;

  add(level: LogLevel, line: string): void {
    if (STACK_TRACE.test(line)) return;
    if (LAST_WORDS.test(line)) this.#lastWords = line;
    else if ((level === "error" || TEMPLATE_REASON.test(line)) && this.#errors.length < KEPT_LINES)
      this.#errors.push(line);
  }

  /** Why it failed, the most relevant line first; undefined when nothing was logged. */
  get reason(): string | undefined {
    const lines = this.#lastWords === undefined ? this.#errors : [this.#lastWords, ...this.#errors];
    return lines.length > 0 ? lines.join("\n") : undefined;
  }

  /** Forgets errors of earlier calls. */
  clear(): void {
    this.#errors = [];
  }
}

const USING_DEVICE = /using device WebGPU/;
const OFFLOADED = /offloaded (\d+)\/\d+ layers to GPU/;

/** Finds the number of offloaded layers, including the output layer, which llama.cpp reports only in its log. */
export class OffloadLog {
  #usesDevice = false;
  #layers = 0;

  add(line: string): void {
    this.#usesDevice ||= USING_DEVICE.test(line);
    const match = OFFLOADED.exec(line);
    if (match) this.#layers = Number(match[1]);
  }

  /** Layers on the GPU; 0 when no device was opened. */
  get layers(): number {
    return this.#usesDevice ? this.#layers : 0;
  }
}
