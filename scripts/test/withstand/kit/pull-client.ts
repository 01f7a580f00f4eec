import { z } from "zod";
import { type DaemonOptions, startDaemon, type TestDaemon } from "../../../../test/support/start-daemon.ts";
import type { Findings } from "./findings.ts";

/** Longest that a pull may take: 19 s of waits between attempts, some of them for each file, and slow answers. */
const LONGEST_PULL_MS = 180_000;
/** Longest time until a refusal arrives. It takes a second; the rest is for a slow machine. */
const LONGEST_NO_MS = 10_000;

/** Errors that a hub may be the reason of. */
const CODES_OF_HUBS = new Set([
  "hub_unreachable",
  "hub_answer_invalid",
  "hub_repo_not_found",
  "hub_access_denied",
  "no_gguf_in_repo",
  "checksum_mismatch",
  // Another request has deleted it, or deletes it.
  "model_file_not_found",
  "model_not_found",
  "model_busy",
  "model_loading",
]);
const FINAL = new Set(["hub_answer_invalid", "hub_repo_not_found", "no_gguf_in_repo"]);
const PULLED = z.object({ status: z.literal("success"), model: z.string() });
const FAILED = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

/** Pulls and deletes at a daemon, which may be one of its own that is killed. */
export class PullClient {
  readonly #findings: Findings;
  readonly #target: DaemonOptions | { readonly url: string };
  #own: TestDaemon | undefined;

  constructor(findings: Findings, target: DaemonOptions | { readonly url: string }) {
    this.#findings = findings;
    this.#target = target;
  }

  async start(): Promise<void> {
    if (!("url" in this.#target)) this.#own = await startDaemon(this.#target);
  }

  async kill(): Promise<void> {
    const own = this.#own;
    this.#own = undefined;
    own?.kill("SIGKILL");
    await own?.exited;
    await own?.stop();
  }

  async stop(): Promise<void> {
    await this.#own?.stop();
    this.#own = undefined;
  }

  /** @returns "pulled", "left", "killed" or the code of the error */
  async pull(name: string, leaveAfterMs: number | undefined): Promise<string> {
    const startedAt = performance.now();
    const answer = await this.#send("POST", "/api/models/pull", { name }, leaveAfterMs);
    const tookMs = performance.now() - startedAt;
    if (typeof answer === "string") return answer;
    if (tookMs > LONGEST_PULL_MS) this.#findings.add("a pull took long", `${name}: ${Math.round(tookMs)} ms`);
    const body: unknown = JSON.parse(answer.text);
    if (PULLED.safeParse(body).success) {
      this.#findings.count("pulls: done");
      return "pulled";
    }
    const { code, message } = FAILED.parse(body).error;
    this.#findings.count(`pulls: ${code}`);
    if (!CODES_OF_HUBS.has(code)) this.#findings.add("a pull failed in another way", answer.text);
    if (!/[.!]$/.test(message)) this.#findings.add("an error is not a sentence", message);
    if (FINAL.has(code) && tookMs > LONGEST_NO_MS)
      this.#findings.count("pulls: final after retries of others");
    return code;
  }

  async remove(spec: string): Promise<void> {
    const answer = await this.#send("DELETE", `/api/models/${spec}`, undefined, undefined);
    if (typeof answer === "string" || answer.ok) return;
    const { code } = FAILED.parse(JSON.parse(answer.text)).error;
    this.#findings.count(`deletions: ${code}`);
    if (!CODES_OF_HUBS.has(code)) this.#findings.add("a deletion failed in another way", answer.text);
  }

  async #send(method: string, route: string, body: object | undefined, leaveAfterMs: number | undefined) {
    const own = this.#own;
    const url = "url" in this.#target ? this.#target.url : own?.url;
    if (url === undefined) return "killed";
    const signal = AbortSignal.timeout(leaveAfterMs ?? LONGEST_PULL_MS * 2);
    try {
      const answer = await fetch(url + route, {
        method,
        signal,
        headers: { "content-type": "application/json" },
        ...(body && { body: JSON.stringify(body) }),
      });
      return { ok: answer.ok, text: await answer.text() };
    } catch (error) {
      if (signal.aborted && leaveAfterMs !== undefined) return "left";
      if (own !== undefined && this.#own !== own) return "killed";
      if (own === undefined)
        this.#findings.add("the daemon gave no answer", `${method} ${route}: ${String(error)}`);
      return "killed";
    }
  }
}
