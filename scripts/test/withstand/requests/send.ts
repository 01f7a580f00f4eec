import http from "node:http";
import type { Readable } from "node:stream";

export interface Sent {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

/** Time after which the client leaves. That is not a finding, since answers can be long. */
const DEADLINE_MS = 4000;
/** Longest answer that is read. */
const MAX_READ = 4 * 1024 * 1024;

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | Readable;
  /** Close the connection after so many bytes of the body. */
  readonly cutAfter?: number;
  readonly deadlineMs?: number;
}

/** The response, or a word if the client left or the connection was closed before one arrived. */
export function send(url: string, request: Request): Promise<Sent | "left" | "closed"> {
  const { method, path, headers = {}, body = "", cutAfter } = request;
  const isWhole = typeof body === "string" || Buffer.isBuffer(body);
  // Node sends a DELETE's body without its length.
  const length =
    isWhole && !("transfer-encoding" in headers) ? { "content-length": Buffer.byteLength(body) } : {};
  return new Promise((resolve) => {
    const outgoing = http.request(
      `${url}${path}`,
      { method, headers: { ...headers, ...length }, agent: false },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          if (text.length < MAX_READ) text += chunk;
        });
        response.once("end", () => {
          const contentType = response.headers["content-type"] ?? "";
          resolve({ status: response.statusCode ?? 0, contentType, text });
          outgoing.destroy();
        });
        response.once("error", () => resolve("closed"));
      },
    );
    const timer = setTimeout(() => {
      resolve("left");
      outgoing.destroy();
    }, request.deadlineMs ?? DEADLINE_MS);
    outgoing.once("close", () => {
      clearTimeout(timer);
      resolve("closed");
    });
    // After an early answer the daemon may close what is still being sent.
    outgoing.on("error", () => undefined);
    if (isWhole) {
      if (cutAfter === undefined) outgoing.end(body);
      else outgoing.write(body.slice(0, cutAfter), () => outgoing.destroy());
    } else body.on("error", () => undefined).pipe(outgoing);
  });
}
