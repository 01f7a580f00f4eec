import { z } from "zod";
import { type CliIo, write, writeLine } from "../cli-io.ts";
import { formatDuration } from "../../json/quantities.ts";
import { printable, styleFor } from "./format.ts";

/** Statistics in the last line of an answer. */
export interface AnswerSummary {
  done_reason?: string | undefined;
  total_duration_ms?: number | undefined;
  prompt_tokens?: number | undefined;
  completion_tokens?: number | undefined;
  tokens_per_second?: number | undefined;
}

/**
 * Shows an answer while it is generated. Only the answer goes to standard output, for pipes; the reasoning goes to
 * standard error.
 */
export class AnswerDisplay {
  readonly #io: CliIo;
  readonly #options: { hideThinking?: boolean; verbose?: boolean };
  #lastOutput: "nothing" | "thinking" | "text" = "nothing";
  #endsInNewline = true;

  constructor(io: CliIo, options: { hideThinking?: boolean; verbose?: boolean }) {
    this.#io = io;
    this.#options = options;
  }

  async thinking(delta: string): Promise<void> {
    if (this.#options.hideThinking || delta === "") return;
    this.#lastOutput = "thinking";
    const { stderr } = this.#io;
    await write(stderr, this.#dim(stderr.isTTY ? printable(delta) : delta));
  }

  async text(delta: string): Promise<void> {
    if (delta === "") return;
    const { stdout, stderr } = this.#io;
    if (this.#lastOutput === "thinking") await write(stderr, "\n\n");
    this.#lastOutput = "text";
    const visible = stdout.isTTY ? printable(delta) : delta;
    if (visible !== "") this.#endsInNewline = visible.endsWith("\n");
    await write(stdout, visible);
  }

  /** Ends a complete or interrupted answer with a new line. */
  async end(): Promise<void> {
    if (this.#lastOutput === "thinking") await writeLine(this.#io.stderr);
    else if (!this.#endsInNewline) await writeLine(this.#io.stdout);
    this.#lastOutput = "nothing";
    this.#endsInNewline = true;
  }

  /** Prints a note if the answer was cut off, and the statistics that --verbose asks for. */
  async summarize(summary: AnswerSummary): Promise<void> {
    if (summary.done_reason === "length") {
      const note = `[cut off after ${summary.completion_tokens ?? "the allowed"} tokens; --max-tokens allows more]`;
      await writeLine(this.#io.stderr, this.#dim(note));
    }
    if (this.#options.verbose) await this.statistics(summary);
  }

  async statistics(summary: AnswerSummary): Promise<void> {
    const parts = [
      summary.prompt_tokens !== undefined && `${summary.prompt_tokens} tokens in`,
      summary.completion_tokens !== undefined && `${summary.completion_tokens} tokens out`,
      summary.tokens_per_second !== undefined && `${summary.tokens_per_second.toFixed(1)} tokens/s`,
      summary.total_duration_ms !== undefined && `${formatDuration(summary.total_duration_ms)} in all`,
    ].filter((part) => part !== false);
    await writeLine(this.#io.stderr, this.#dim(`[${parts.join(", ")}]`));
  }

  #dim(text: string): string {
    return styleFor(this.#io.stderr, this.#io.env).dim(text);
  }
}

const summaryFields = {
  done: z.boolean(),
  done_reason: z.string().optional(),
  total_duration_ms: z.number().optional(),
  prompt_tokens: z.number().optional(),
  completion_tokens: z.number().optional(),
  tokens_per_second: z.number().optional(),
};

/** Line or full response of POST /api/generate, with the fields that the CLI needs. */
export const generateLineSchema = z.object({
  model: z.string(),
  response: z.string(),
  thinking: z.string().optional(),
  ...summaryFields,
});

/** Line or full response of POST /api/chat. */
export const chatLineSchema = z.object({
  model: z.string(),
  message: z.object({ role: z.string(), content: z.string(), thinking: z.string().optional() }),
  ...summaryFields,
});
