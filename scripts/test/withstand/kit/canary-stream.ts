import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { postJson } from "../../../../test/support/post-json.ts";
import type { Findings } from "./findings.ts";

/** Greedy, so that every stream must say the same; by name, since an attack may choose another default model. */
const REQUEST = {
  model: "daybreak-mini",
  prompt: "Tell me about yourself.",
  temperature: 0,
  max_tokens: 48,
  stream: true,
};
/** Leaves the CPU to the part under attack. */
const PAUSE_MS = 300;
const LINES = z.array(z.object({ response: z.string().optional(), done: z.boolean().optional() }));

/** Streams answers of the shipped model, one after the other, while others are attacked: each must be whole. */
export class CanaryStream {
  readonly #url: string;
  readonly #findings: Findings;
  readonly #stopped = new AbortController();
  readonly #end: Promise<void>;
  #text: string | undefined;
  #streams = 0;

  constructor(url: string, findings: Findings) {
    this.#url = url;
    this.#findings = findings;
    this.#end = this.#run();
  }

  /** @returns how many streams have ended well */
  async stop(): Promise<number> {
    this.#stopped.abort();
    await this.#end;
    return this.#streams;
  }

  async #run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      try {
        const text = await this.#stream();
        this.#text ??= text;
        if (text === this.#text) this.#streams += 1;
        else this.#findings.add("another model's stream was disturbed", JSON.stringify(text));
      } catch (error) {
        this.#findings.add("another model's stream was disturbed", String(error));
      }
      await sleep(PAUSE_MS);
    }
  }

  async #stream(): Promise<string> {
    const response = await postJson(`${this.#url}/api/generate`, REQUEST);
    const text = await response.text();
    if (!response.ok) throw new Error(`${response.status} ${text}`);
    const lines = LINES.parse(
      text
        .trimEnd()
        .split("\n")
        .map((line): unknown => JSON.parse(line)),
    );
    if (lines.at(-1)?.done !== true) throw new Error(`cut after ${lines.length} lines: ${text.slice(-500)}`);
    return lines.map(({ response: piece = "" }) => piece).join("");
  }
}
