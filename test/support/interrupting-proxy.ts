import { once } from "node:events";
import http from "node:http";

/** Passes requests on to a server; answers whose path fits a pattern can be interrupted. */
export interface InterruptingProxy extends AsyncDisposable {
  readonly url: string;
  /** Range header of each request whose path fits; "" without one. */
  readonly ranges: string[];
  /** Interruptions of the next answers that fit, after so many bytes; empty: answers pass. */
  readonly interruptions: { readonly afterBytes: number; readonly how: "hold" | "damage" }[];
  /** Breaks off the answers that are held; returns how many there were. */
  cut(): number;
}

export async function startInterruptingProxy(target: string, pattern: RegExp): Promise<InterruptingProxy> {
  const ranges: string[] = [];
  const interruptions: InterruptingProxy["interruptions"] = [];
  const held = new Set<http.ServerResponse>();
  const server = http.createServer((request, response) => {
    const isWatched = pattern.test(request.url ?? "");
    if (isWatched) ranges.push(request.headers.range ?? "");
    const interruption = isWatched ? interruptions.shift() : undefined;
    const headers = { ...request.headers, host: new URL(target).host };
    const outgoing = http.request(target + request.url, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      if (!interruption) {
        answer.pipe(response);
        return;
      }
      let passed = 0;
      answer.on("data", (chunk: Buffer) => {
        const budget = interruption.afterBytes - passed;
        passed += chunk.length;
        if (interruption.how === "damage") {
          if (budget > 0 && budget <= chunk.length) chunk[budget - 1]! ^= 1;
          response.write(chunk);
        } else if (budget > 0) {
          response.write(chunk.subarray(0, budget), () => {
            if (chunk.length >= budget) held.add(response);
          });
        }
      });
      answer.on("end", () => {
        if (interruption.how === "damage") response.end();
      });
    });
    outgoing.on("error", () => response.destroy());
    request.pipe(outgoing);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    ranges,
    interruptions,
    cut() {
      const cut = held.size;
      for (const response of held) response.destroy();
      held.clear();
      return cut;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
