import type { ChildProcess } from "node:child_process";
import { z } from "zod";
import { ServiceError } from "../errors/service-error.ts";
import { type DaemonMessage, type EngineMessage, engineMessageSchema } from "./protocol/messages.ts";
import type { EngineExit } from "./engine.ts";
import { LastLines } from "./last-lines.ts";

/** Lines of output kept to explain an end. */
const KEPT_LINES = 20;

/** One engine process: its channel, its end, and the reason for it. */
export class EngineProcess {
  readonly #child: ChildProcess;
  readonly #output = new LastLines(KEPT_LINES);
  readonly #exited = Promise.withResolvers<EngineExit>();
  /** Set when we end the process, or it says that it ends. */
  #ending: { readonly exit: EngineExit; readonly error: ServiceError } | undefined;
  #hasEnded = false;
  /** Receives every valid message; set by the owner. */
  onMessage: (message: EngineMessage) => void = () => {};
  /** Called once, when the process has ended. */
  onEnd: (error: ServiceError) => void = () => {};

  constructor(child: ChildProcess) {
    this.#child = child;
    if (child.stdout) this.#output.watch(child.stdout);
    if (child.stderr) this.#output.watch(child.stderr);
    child.on("message", (message) => this.#receive(message));
    child.on("error", (error) => {
      this.end(`could not be started: ${error.message}`);
      if (child.pid === undefined) this.#finish(null, null);
    });
    child.on("close", (code, signal) => this.#finish(code, signal));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get alive(): boolean {
    return !this.#hasEnded && this.#ending === undefined;
  }

  /** Settles when the process is gone; never rejects. */
  get exited(): Promise<EngineExit> {
    return this.#exited.promise;
  }

  /** @throws ServiceError internal_error when the message cannot be sent as it is */
  post(message: DaemonMessage): void {
    try {
      // A channel that is closed means that the process has ended, which is reported by its end.
      this.#child.send(message, () => {});
    } catch (error) {
      throw new ServiceError("internal_error", "A message for the engine could not be sent.", {
        cause: error,
      });
    }
  }

  /** Ends the process. The first reason counts. */
  end(reason: string, options: { expected?: boolean; code?: "deadline_exceeded" } = {}): void {
    this.#announceEnd(reason, options);
    this.#child.kill("SIGKILL");
  }

  #announceEnd(
    reason: string,
    { expected = false, code }: { expected?: boolean; code?: "deadline_exceeded" },
  ): void {
    this.#ending ??= { exit: { expected, reason }, error: endError(reason, code) };
  }

  #receive(message: unknown): void {
    if (this.#ending) return;
    const parsed = engineMessageSchema.safeParse(message);
    if (!parsed.success) {
      this.end(`sent a message that is not valid: ${z.prettifyError(parsed.error)}`);
    } else if (parsed.data.type === "fatal") {
      this.#announceEnd(parsed.data.reason, {});
    } else {
      this.onMessage(parsed.data);
    }
  }

  #finish(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    // A process that ended by itself has said why; one that was killed may not have known.
    const line = this.#output.lastError ?? (signal ? undefined : this.#output.last);
    const how = signal ? `killed by ${signal}` : `exited with code ${code}`;
    this.#announceEnd(line === undefined ? how : `${how} (${line})`, {});
    const { exit, error } = this.#ending!;
    this.onEnd(error);
    this.#exited.resolve(exit);
  }
}

function endError(reason: string, code: "deadline_exceeded" | undefined): ServiceError {
  return code
    ? new ServiceError(code, `The model stopped answering: it ${reason}.`)
    : new ServiceError("engine_crashed", `The model's engine ended while the request ran: ${reason}`);
}
