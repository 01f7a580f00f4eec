import { z } from "zod";
import { type CliIo, write, writeLine } from "../cli-io.ts";
import { formatDuration, printable, styleFor } from "./format.ts";

/** Numbers that the last line of an answer carries. */
export interface AnswerSummary {
  done_reason?: string | undefined;
  total_duration_ms?: number | undefined;
  prompt_tokens?: number | undefined;
  completion_tokens?: number | undefined;
  tokens_per_second?: number | undefined;
}

/**
 * Shows an answer as it grows. The answer alone goes to standard output, so that a pipe gets nothing else; the
 * reasoning before it goes to standard error.
 */
export class AnswerDisplay {
  readonly #io: CliIo;
  readonly #hideThinking: boolean;
  #lastOutput: "nothing" | "thinking" | "text" = "nothing";
  #endsInNewline = true;

  constructor(io: CliIo, options: { hideThinking?: boolean | undefined }) {
    this.#io = io;
    this.#hideThinking = options.hideThinking ?? false;
  }

  async thinking(piece: string): Promise<void> {
    if (this.#hideThinking || piece === "") return;
    this.#lastOutput = "thinking";
    const { stderr, env } = this.#io;
    await write(stderr, styleFor(stderr, env).dim(stderr.isTTY ? printable(piece) : piece));
  }

  async text(piece: string): Promise<void> {
    if (piece === "") return;
    const { stdout, stderr } = this.#io;
    if (this.#lastOutput === "thinking") await write(stderr, "\n\n");
    this.#lastOutput = "text";
    const shown = stdout.isTTY ? printable(piece) : piece;
    if (shown !== "") this.#endsInNewline = shown.endsWith("\n");
    await write(stdout, shown);
  }

  /** The answer is complete, or was interrupted: what follows begins on a new line. */
  async end(): Promise<void> {
    if (this.#lastOutput === "thinking") await writeLine(this.#io.stderr);
    else if (!this.#endsInNewline) await writeLine(this.#io.stdout);
    this.#lastOutput = "nothing";
    this.#endsInNewline = true;
  }

  /** Says so when an answer was cut off. */
  async cutNote(summary: AnswerSummary): Promise<void> {
    if (summary.done_reason !== "length") return;
    const { stderr, env } = this.#io;
    const note = `[cut off after ${summary.completion_tokens ?? "the allowed"} tokens; --max-tokens allows more]`;
    await writeLine(stderr, styleFor(stderr, env).dim(note));
  }

  async statistics(summary: AnswerSummary): Promise<void> {
    const { stderr, env } = this.#io;
    const parts = [
      summary.prompt_tokens !== undefined && `${summary.prompt_tokens} tokens in`,
      summary.completion_tokens !== undefined && `${summary.completion_tokens} tokens out`,
      summary.tokens_per_second !== undefined && `${summary.tokens_per_second.toFixed(1)} tokens/s`,
      summary.total_duration_ms !== undefined && `${formatDuration(summary.total_duration_ms)} in all`,
    ].filter((part) => part !== false);
    await writeLine(stderr, styleFor(stderr, env).dim(`[${parts.join(", ")}]`));
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

/** A line of a streamed POST /api/generate, or its whole answer: only what the CLI needs. */
export const generateLineSchema = z.object({
  model: z.string(),
  response: z.string(),
  thinking: z.string().optional(),
  ...summaryFields,
});

/** A line of a streamed POST /api/chat, or its whole answer. */
export const chatLineSchema = z.object({
  model: z.string(),
  message: z.object({ role: z.string(), content: z.string(), thinking: z.string().optional() }),
  ...summaryFields,
});
