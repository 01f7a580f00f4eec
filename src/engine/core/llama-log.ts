import type { LogLevel } from "./platform.ts";

/** Lines kept; the first error often is the reason, and those after it repeat it from further up. */
const KEPT_LINES = 8;

/**
 * What llama.cpp's assertions, out-of-memory ends and lost GPUs look like; they are not marked as errors. That there is
 * no adapter it says on every CPU.
 */
const LAST_WORDS =
  /GGML_ASSERT|Aborted\([^)]|terminating due to|fatal error|ggml_webgpu: (?!failed to get an adapter).*(failed|lost|timed out|exhausted|error)/i;

/** The last line of the report of a chat template that failed; it is not marked as an error either. */
const TEMPLATE_REASON = /^Error: /;

/** wllama's annotated stack: it says where, not why. */
const STACK_TRACE = /^Stack trace/;

/** Remembers what llama.cpp said before it failed. */
export class FailureLog {
  #errors: string[] = [];
  #lastWords: string | undefined;

  add(level: LogLevel, line: string): void {
    if (STACK_TRACE.test(line)) return;
    if (LAST_WORDS.test(line)) this.#lastWords = line;
    else if ((level === "error" || TEMPLATE_REASON.test(line)) && this.#errors.length < KEPT_LINES)
      this.#errors.push(line);
  }

  /** Why it failed, the most telling line first; undefined when nothing was said. */
  get reason(): string | undefined {
    const lines = this.#lastWords === undefined ? this.#errors : [this.#lastWords, ...this.#errors];
    return lines.length > 0 ? lines.join("\n") : undefined;
  }

  /** Errors of one step say nothing about the next. */
  clear(): void {
    this.#errors = [];
  }
}

const USING_DEVICE = /using device WebGPU/;
const OFFLOADED = /offloaded (\d+)\/\d+ layers to GPU/;

/**
 * What llama.cpp says in its log, and nowhere else, about the layers that it has put on a GPU while it loaded. It
 * counts the output layer as one more.
 */
export class OffloadLog {
  #usesDevice = false;
  #layers = 0;

  add(line: string): void {
    this.#usesDevice ||= USING_DEVICE.test(line);
    const match = OFFLOADED.exec(line);
    if (match) this.#layers = Number(match[1]);
  }

  /** Layers on the GPU; 0 when no device was opened, whatever was asked for. */
  get layers(): number {
    return this.#usesDevice ? this.#layers : 0;
  }
}
