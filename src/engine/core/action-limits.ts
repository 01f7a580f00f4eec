import { ServiceError } from "../../errors/service-error.ts";
import type { BlobLike } from "./platform.ts";
import { templateTooSlow } from "./template-failure.ts";

/**
 * Time to take a request on: to run the chat template and make tokens of the prompt. Milliseconds on an ordinary
 * machine, and no step of the model is part of it.
 */
const START_MS = 15_000;

/** As much again for each million characters of the request: tokens of as many take half a second. */
const START_CHARACTERS = 1_000_000;

/** Longest time in milliseconds that llama.cpp may take to accept a request. */
export function startLimitMs(requestJson: string): number {
  return START_MS * (1 + requestJson.length / START_CHARACTERS);
}

/** Error of a request that llama.cpp did not accept in time. */
export function tookTooLong(isChat: boolean, limitMs: number): ServiceError {
  if (isChat) return templateTooSlow(limitMs / 1000);
  return new ServiceError(
    "deadline_exceeded",
    `The text was not made into tokens within ${Math.round(limitMs / 1000)} s, so the model's engine was ended. Send a shorter text.`,
  );
}

/** The last that llama.cpp says before it tries the model with two tokens, and then its chat template. */
const GRAPH_RESERVED = /sched_reserve: reserve took/;

/** The two trials and the template take less than a second for a small model. */
const ENDING_MS = 15_000;

/** For each trial all weights are read; the slowest kernels get through so many bytes in a second. */
const BYTES_PER_SECOND = 100 * 1024 ** 2;

/** A GPU's driver compiles programs in the trials, a few seconds each on slow ones. */
const GPU_ENDING_MS = 180_000;

/**
 * Watches the end of a load. While the weights are read, a load may take its time as long as it makes progress; behind
 * that only the trials and the chat template are left, and a template may run without an end.
 */
export class LoadEnding {
  readonly #limitMs: number;
  readonly #onEndless: (error: ServiceError) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  constructor(
    blobs: readonly Pick<BlobLike, "size">[],
    usesGpu: boolean,
    onEndless: (error: ServiceError) => void,
  ) {
    const bytes = blobs.reduce((sum, { size }) => sum + size, 0);
    this.#limitMs = (usesGpu ? GPU_ENDING_MS : ENDING_MS) + (bytes / BYTES_PER_SECOND) * 1000;
    this.#onEndless = onEndless;
  }

  /** Takes a line of llama.cpp's log. */
  add(line: string): void {
    if (this.#isOver || (this.#timer === undefined && !GRAPH_RESERVED.test(line))) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#onEndless(templateTooSlow(this.#limitMs / 1000)), this.#limitMs);
  }

  /** The load has ended. */
  over(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }
}
