import type { CliIo } from "../cli-io.ts";
import { chatLineSchema } from "../client/answer-lines.ts";
import type { DaemonClient } from "../client/daemon-client.ts";
import { withLoadedModel } from "../client/with-loaded-model.ts";
import { writeJson } from "../terminal/write.ts";
import { AnswerDisplay, type AnswerSummary } from "../terminal/answer-display.ts";

interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

interface ConversationOptions {
  readonly system?: string | undefined;
  readonly model?: string | undefined;
  readonly hideThinking?: boolean | undefined;
  /** Print the daemon's lines instead of the text in them. */
  readonly json?: boolean | undefined;
  /** Further fields of every request. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A conversation with a model: keeps the messages so far, and requests and shows the next answer. */
export class Conversation {
  readonly #io: CliIo;
  readonly #client: DaemonClient;
  readonly #options: ConversationOptions;
  #messages: Message[] = [];

  constructor(io: CliIo, client: DaemonClient, options: ConversationOptions) {
    this.#io = io;
    this.#client = client;
    this.#options = options;
    this.clear();
  }

  /** Forgets everything but the system prompt. */
  clear(): void {
    const { system } = this.#options;
    this.#messages = system === undefined ? [] : [{ role: "system", content: system }];
  }

  /**
   * Sends a message and shows the answer as it comes. What has been shown of an answer stays part of the
   * conversation when `signal` aborts it; a message without any answer does not.
   */
  async say(text: string, signal: AbortSignal): Promise<AnswerSummary | undefined> {
    this.#messages.push({ role: "user", content: text });
    const display = new AnswerDisplay(this.#io, this.#options);
    let answer = "";
    let summary: AnswerSummary | undefined;
    try {
      await withLoadedModel(this.#io, this.#client, this.#options.model, async () => {
        const request = { ...this.#options.fields, messages: this.#messages, stream: true };
        for await (const line of this.#client.lines(chatLineSchema, "POST", "/api/chat", request, signal)) {
          if (this.#options.json) await writeJson(this.#io.stdout, line);
          else {
            await display.thinking(line.message.thinking ?? "");
            await display.text(line.message.content);
          }
          answer += line.message.content;
          if (line.done) summary = line;
        }
      });
      return summary;
    } finally {
      await display.end();
      if (answer !== "" || summary) this.#messages.push({ role: "assistant", content: answer });
      else this.#messages.pop();
    }
  }
}
