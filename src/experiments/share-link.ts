import { ServiceError } from "../errors/service-error.ts";
import { type Experiment, parseExperiment, printExperiment } from "./experiment-file.ts";

/** Largest experiment that is read from a link, in bytes: a few thousand tokens with alternatives have one. */
const MAX_BYTES = 16 * 1024 * 1024;

/** An experiment as the fragment of a link: its file, compressed by deflate, in base64url. No server ever sees it. */
export async function toFragment(experiment: Experiment): Promise<string> {
  const stream = new Blob([printExperiment(experiment)])
    .stream()
    .pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const binary = Array.from(bytes, (byte) => String.fromCodePoint(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/**
 * The experiment in the fragment of a link.
 * @throws ServiceError invalid_parameter
 */
export async function fromFragment(fragment: string): Promise<Experiment> {
  return parseExperiment(await inflate(fragment));
}

async function inflate(fragment: string): Promise<string> {
  try {
    const binary = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.codePointAt(0) ?? 0);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return await textOf(stream);
  } catch (error) {
    throw new ServiceError(
      "invalid_parameter",
      "This link does not hold an experiment: it was cut or changed. Ask for the experiment's file instead.",
      { cause: error },
    );
  }
}

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let size = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > MAX_BYTES) {
      await reader.cancel();
      throw new RangeError(`more than ${MAX_BYTES} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}
