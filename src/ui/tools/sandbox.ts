import { z } from "zod";

/** A tool that runs longer is ended: the model waits for it, and so does a person. */
const LIMIT_MS = 30_000;

/** Of what a tool gives, in characters: more would fill any context. */
const MAX_RESULT = 100_000;

const messageSchema = z.union([z.object({ result: z.string() }), z.object({ error: z.string() })]);

/**
 * Runs the body of an async function of `args` in a worker inside a frame that has no origin, no network, and nothing of
 * this page.
 * @returns what it returns: a text as it is, anything else as JSON
 * @throws Error with what it throws, when it takes too long, or when it is stopped
 */
export async function runInSandbox(code: string, args: unknown, signal: AbortSignal): Promise<string> {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.hidden = true;
  frame.title = "A tool";
  // Not its address: browsers load a frame without an origin past the service worker, which has it without a server.
  frame.srcdoc = await readFrame();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const onMessage = ({ source, data }: MessageEvent): void => {
    if (source !== frame.contentWindow) return;
    if (data === "ready") {
      frame.contentWindow?.postMessage({ code, args }, "*");
      return;
    }
    const message = messageSchema.safeParse(data).data ?? { error: "The tool gave no result." };
    if ("error" in message) reject(new Error(message.error));
    else resolve(message.result.slice(0, MAX_RESULT));
  };
  addEventListener("message", onMessage);
  const seconds = LIMIT_MS / 1000;
  const timer = setTimeout(() => reject(new Error(`The tool took longer than ${seconds} s.`)), LIMIT_MS);
  const onAbort = (): void => reject(new Error("The tool was stopped."));
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  document.body.append(frame);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    removeEventListener("message", onMessage);
    // Its worker ends with it.
    frame.remove();
  }
}

async function readFrame(): Promise<string> {
  const answer = await fetch(new URL("tool-frame.html", document.baseURI)).catch(() => undefined);
  if (!answer?.ok) throw new Error("The frame in which tools run cannot be loaded. Load the page again.");
  return await answer.text();
}
