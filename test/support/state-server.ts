import { once } from "node:events";
import http from "node:http";

export interface StateServer {
  readonly url: string;
  /** State that the server reports. */
  state: "ok" | "starting" | "draining";
  close(): Promise<void>;
}

/**
 * Answers as a daemon does in each state of its life, for as long as a test wants.
 * @param at its address; absent: a free port
 */
export async function startStateServer(at?: string): Promise<StateServer> {
  const server = http.createServer((request, response) => {
    const headers = { "access-control-allow-origin": "*", "content-type": "application/json" };
    const isHealth = request.url === "/health";
    const body = isHealth ? { status: own.state } : { models: [] };
    response.writeHead(isHealth && own.state !== "ok" ? 503 : 200, headers).end(JSON.stringify(body));
  });
  server.listen(at === undefined ? 0 : Number(new URL(at).port), "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const own: StateServer = {
    url: `http://127.0.0.1:${address.port}`,
    state: "ok",
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return own;
}
