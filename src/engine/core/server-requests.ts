import { ServiceError } from "../../errors/service-error.ts";
import { fromCallError, fromRejection, fromServerError } from "./engine-failure.ts";
import type { AcceptedResult, ResultReceiver, StartAction } from "./loop-request.ts";
import type { RequestLoop } from "./request-loop.ts";
import type { WorkerActions } from "./wllama-api.ts";
import { EngineCallError } from "./wllama-session.ts";

/** Runs requests of llama.cpp's server that need a slot, and converts its errors to ServiceErrors. */
export class ServerRequests {
  readonly #loop: RequestLoop;

  constructor(loop: RequestLoop) {
    this.#loop = loop;
  }

  /** Runs a request. An exception before the first result means an invalid request, a later one a failure. */
  async run<Action extends StartAction>(
    action: Action,
    body: WorkerActions[Action],
    onResult: ResultReceiver<AcceptedResult>,
    signal: AbortSignal,
    number?: number,
  ): Promise<void> {
    let isAccepted = false;
    try {
      await this.#loop.run(
        action,
        body,
        (result, chosen) => {
          isAccepted = true;
          if (result.kind === "error") throw fromServerError(result.data);
          onResult(result, chosen);
        },
        signal,
        number,
      );
    } catch (error) {
      throw error instanceof EngineCallError && !isAccepted ? fromRejection(error) : fromCallError(error);
    }
  }

  /** Runs a request that has one result. */
  async runForResult<Action extends "embedding" | "rerank">(
    action: Action,
    body: WorkerActions[Action],
    signal: AbortSignal,
  ): Promise<unknown> {
    let only: { readonly data: unknown } | undefined;
    await this.run(action, body, (result) => (only ??= result.kind === "data" ? result : undefined), signal);
    if (only === undefined) throw new ServiceError("inference_failed", "The model did not return a result.");
    return only.data;
  }
}
