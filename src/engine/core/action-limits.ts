import { Watchdog } from "../../async/watchdog.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { BlobLike } from "./platform.ts";
import { templateTooSlow } from "./template-failure.ts";

/**
 * Longest time to accept a request: to render the chat template and tokenize the prompt. It does not include a step of
 * the model, so it is normally short.
 */
const START_MS = 15_000;

/** The limit grows by {@link START_MS} for each of this many characters. */
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
    `The text could not be tokenized within ${Math.round(limitMs / 1000)} s, so the model's engine was stopped. Send a shorter text.`,
  );
}

/** llama.cpp's last log line before it tries the model with two tokens, then its chat template. */
const GRAPH_RESERVED = /sched_reserve: reserve took/;

/** Much longer than the trials and the template take for a small model. */
const ENDING_MS = 15_000;

/** Each trial reads all weights; even the slowest kernels are this fast. */
const BYTES_PER_SECOND = 100 * 1024 ** 2;

/** During the trials a GPU's driver compiles shaders, which may take minutes. */
const GPU_ENDING_MS = 180_000;

/**
 * Limits the end of a load. While weights are read, progress is visible; after that only the trials and the chat
 * template are left, and a template may never finish.
 */
export class LoadEnding {
  readonly #limitMs: number;
  readonly #onEndless: (error: ServiceError) => void;
  #watchdog: Watchdog | undefined;
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

  /** Handles a line of llama.cpp's log. */
  add(line: string): void {
    if (this.#isOver) return;
    this.#watchdog?.reset();
    if (!GRAPH_RESERVED.test(line)) return;
    this.#watchdog ??= new Watchdog(this.#limitMs, () =>
      this.#onEndless(templateTooSlow(this.#limitMs / 1000)),
    );
  }

  /** Call this when the load has ended. */
  over(): void {
    this.#isOver = true;
    this.#watchdog?.stop();
  }
}
