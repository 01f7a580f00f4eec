import { ServiceError } from "../errors/service-error.ts";
import { plainEnd } from "./core/plain-reason.ts";
import type { EngineExit } from "./engine.ts";
import type { DaemonMessage, EngineMessage } from "./protocol/messages.ts";

/** The way to one running engine, wherever it runs. */
export interface EngineConnection {
  /** Of its process; 0 where it has none. */
  readonly pid: number;
  /** False once it has ended or is ending. */
  readonly alive: boolean;
  /** Settles when it is gone; never rejects. */
  readonly exited: Promise<EngineExit>;
  /** @throws ServiceError internal_error when the message cannot be sent as it is */
  post(message: DaemonMessage): void;
  /** Ends the engine. The first reason counts. */
  end(reason: string, options?: EndOptions): void;
}

/** How to report that we ended an engine. */
export interface EndOptions {
  /** Not a failure. */
  readonly expected?: boolean;
  /** engine_crashed when absent. */
  readonly code?: "deadline_exceeded" | "model_not_loaded" | "model_load_failed";
}

/** Receives the messages of an engine. */
export interface EngineReceiver {
  /** Handles a valid message. Returns false when it was not expected, so the engine cannot be trusted. */
  receive(message: EngineMessage): boolean;
  /** Called once, when it has ended. */
  end(error: ServiceError): void;
}

/** The error of calls whose engine has ended. */
export function endError(reason: string, code: EndOptions["code"]): ServiceError {
  switch (code) {
    case "deadline_exceeded":
      return new ServiceError(code, `The model stopped answering: it ${reason}.`);
    case "model_not_loaded":
      return new ServiceError(code, "The model was unloaded while the request ran.");
    case "model_load_failed":
      return new ServiceError(code, reason);
    default:
      return new ServiceError(
        "engine_crashed",
        `The model's engine ended while the request ran: ${plainEnd(reason)}`,
      );
  }
}
