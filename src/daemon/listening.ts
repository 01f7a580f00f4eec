import type { Server } from "node:http";
import { exhaustedResource } from "../errors/exhausted-resource.ts";
import { DaemonStartError } from "./daemon-start-error.ts";

const ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'another program is using it. If it is a daemon, "daybreak stop" ends it; or choose another port with --http-port',
  EACCES: "this user may not. Choose a port from 1024 on with --http-port",
  EADDRNOTAVAIL: "this machine has no such address. Choose another with --http-addr",
  ENOTFOUND: "this is not an address. Choose another with --http-addr",
};

/** Calls `listen` and waits until it has worked; says what to do when it has not. */
export function listening(server: Server, listen: () => void, where: string, advice = ADVICE): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      const what = advice[cause.code ?? ""] ?? exhaustedResource(cause) ?? cause.message;
      reject(new DaemonStartError(`Cannot listen on ${where}: ${what}.`, { cause }));
    };
    server.once("error", onError);
    server.once("listening", () => {
      server.off("error", onError);
      resolve();
    });
    listen();
  });
}
