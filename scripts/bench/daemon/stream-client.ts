import { Agent, type IncomingMessage, request } from "node:http";

/** Sends a request and hands over the pieces of its answer as they come. */
export type StreamClient = (
  url: string,
  body: object | undefined,
  onPiece: (text: string) => void,
) => Promise<void>;

/** Connections stay open between the requests, as a program that uses a service keeps them. */
const AGENT = new Agent({ keepAlive: true });

/** Node's plain HTTP client, which adds little overhead to what is measured. */
export const plainClient: StreamClient = (url, body, onPiece) =>
  new Promise((resolve, reject) => {
    const json = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const headers = json ? { "content-type": "application/json", "content-length": json.length } : {};
    const sent = request(
      url,
      { agent: AGENT, method: json ? "POST" : "GET", headers },
      (answer: IncomingMessage) => {
        answer.setEncoding("utf8");
        answer.on("data", onPiece);
        answer.on("end", () => {
          if (answer.statusCode === 200) resolve();
          else reject(new Error(`the daemon answered ${answer.statusCode}`));
        });
        answer.on("error", reject);
      },
    );
    sent.on("error", reject);
    sent.end(json);
  });

/** fetch(), which most programs in JavaScript use. */
export const fetchClient: StreamClient = async (url, body, onPiece) => {
  const answer = await fetch(url, {
    ...(body !== undefined && {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  });
  if (!answer.ok || !answer.body)
    throw new Error(`the daemon answered ${answer.status}: ${await answer.text()}`);
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) onPiece(piece);
};

/** Ends the connections that {@link plainClient} keeps. */
export function closeConnections(): void {
  AGENT.destroy();
}
