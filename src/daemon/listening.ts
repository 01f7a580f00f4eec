import type { Server } from "node:http";
import { exhaustedResource } from "../errors/exhausted-resource.ts";
import { DaemonStartError } from "./daemon-start-error.ts";

/** What to do about a failure, by the system's error code. */
export type Advice = Readonly<Record<string, string>>;

/** Calls `listen` and waits for it; if it fails, the error says what to do. */
export function listening(server: Server, listen: () => void, where: string, advice: Advice): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      const what = advice[cause.code ?? ""] ?? exhaustedResource(cause) ?? cause.message;
      server.off("listening", onListening);
      reject(new DaemonStartError(`Cannot listen on ${where}: ${what}.`, { cause }));
    };
    const onListening = (): void => {
      server.off("error", onError);
      resolve();
    };
    server.once("error", onError);
    server.once("listening", onListening);
    listen();
  });
}
