import type { Command } from "commander";
import { abortable } from "../../async/promises.ts";
import { startDaemonIfNone } from "../background/start-daemon.ts";
import { PipedPrompter, type Prompter } from "../chat/prompter.ts";
import { CliError, EXIT, Interruption } from "../cli-error.ts";
import { type CliIo, writeJson, writeLine } from "../cli-io.ts";
import { connect } from "../client/daemon-address.ts";
import type { DaemonClient } from "../client/daemon-client.ts";
import { findModelError, withLoadedModel } from "../client/find-model.ts";
import { clientCommand, type ClientOptions } from "../options/common-options.ts";
import {
  generationFields,
  type GenerationOptions,
  withGenerationOptions,
} from "../options/generation-options.ts";
import { AnswerDisplay, type AnswerSummary, chatLineSchema } from "../terminal/answer-display.ts";
import { styleFor } from "../terminal/format.ts";

const HELP = `/clear        forget the conversation so far
/bye          leave (or Ctrl-D)
/help         this list
"""           begin and end a multi-line message; a \\ at the end of a line also continues it
Ctrl-C        cancel the answer; at the prompt, twice, leave`;

interface ChatOptions extends ClientOptions, GenerationOptions {}

/** daybreak chat */
export function chatCommand(io: CliIo): Command {
  return withGenerationOptions(clientCommand("chat", "print the lines of the daemon's answers as JSON"))
    .description("have a conversation in the terminal; starts a daemon in the background when none runs")
    .argument("[model]", "model to talk to, as with --model")
    .action(async (modelArgument: string | undefined, options: ChatOptions) => {
      await chat(io, modelArgument === undefined ? options : { model: modelArgument, ...options });
    });
}

/** Runs a conversation until the user ends it. */
export async function chat(io: CliIo, options: ChatOptions): Promise<void> {
  const { model } = options;
  const fields = await generationFields(options);
  await startDaemonIfNone(io, options);
  const client = connect(io, options);
  // Reports a missing model before the user types anything.
  const missing = model === undefined ? undefined : await findModelError(client, model);
  if (missing) throw missing;
  using prompter = await openPrompter(io);
  const conversation = new Conversation(io, client, options, fields);
  if (io.stdin.isTTY)
    await writeLine(io.stderr, styleFor(io.stderr, io.env).dim("/help lists the commands."));
  await converse(io, prompter, conversation);
}

async function openPrompter(io: CliIo): Promise<Prompter> {
  if (!io.stdin.isTTY || !io.stdout.isTTY) return new PipedPrompter(io);
  const { TerminalPrompter } = await import("../chat/terminal-prompter.ts");
  return new TerminalPrompter(io);
}

async function converse(io: CliIo, prompter: Prompter, conversation: Conversation): Promise<void> {
  let interrupted = false;
  for (;;) {
    const event = await abortable(prompter.next(), io.signal);
    if (event.type === "end") return;
    if (event.type === "interrupt") {
      if (interrupted) throw new Interruption(EXIT.interrupted);
      interrupted = true;
      await writeLine(io.stderr, "\nPress Ctrl-C again, or type /bye, to leave.");
      continue;
    }
    interrupted = false;
    const text = event.text.trim();
    if (text === "/bye" || text === "/exit" || text === "/quit") return;
    if (text === "/clear") {
      conversation.clear();
      await writeLine(io.stderr, "Started a new conversation.");
    } else if (text === "/help" || text === "/?") await writeLine(io.stderr, HELP);
    else if (/^\/[a-z]+$/.test(text))
      await writeLine(io.stderr, `Unknown command ${text}; /help lists the commands.`);
    else if (text !== "") await answerMessage(io, prompter, conversation, event.text);
  }
}

/** Shows the answer to one message. After Ctrl-C or an error at a terminal the conversation continues. */
async function answerMessage(
  io: CliIo,
  prompter: Prompter,
  conversation: Conversation,
  text: string,
): Promise<void> {
  const cancelled = new AbortController();
  using _ = prompter.catchInterrupts(() => cancelled.abort(new Interruption(EXIT.interrupted)));
  try {
    await conversation.sendMessage(text, AbortSignal.any([io.signal, cancelled.signal]));
  } catch (error) {
    if (io.signal.aborted) throw error;
    if (cancelled.signal.aborted) await writeLine(io.stderr, "(cancelled)");
    // A person can read the error and try again; a script needs the exit code.
    else if (error instanceof CliError && io.stdin.isTTY)
      await writeLine(io.stderr, `daybreak: ${error.message}`);
    else throw error;
  }
}

interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** Conversation with a model: stores the messages, requests answers and shows them. */
class Conversation {
  readonly #io: CliIo;
  readonly #client: DaemonClient;
  readonly #options: ChatOptions;
  readonly #fields: Readonly<Record<string, unknown>>;
  #messages: Message[] = [];

  /** @param fields additional fields of every request */
  constructor(
    io: CliIo,
    client: DaemonClient,
    options: ChatOptions,
    fields: Readonly<Record<string, unknown>>,
  ) {
    this.#io = io;
    this.#client = client;
    this.#options = options;
    this.#fields = fields;
    this.clear();
  }

  /** Removes all messages but the system prompt. */
  clear(): void {
    const { system } = this.#options;
    this.#messages = system === undefined ? [] : [{ role: "system", content: system }];
  }

  /**
   * Sends a message and streams the answer to the terminal. If `signal` aborts, the shown part of the answer stays in
   * the conversation; a message without any answer is removed.
   */
  async sendMessage(text: string, signal: AbortSignal): Promise<void> {
    this.#messages.push({ role: "user", content: text });
    const display = new AnswerDisplay(this.#io, this.#options);
    let answer = "";
    let summary: AnswerSummary | undefined;
    try {
      await withLoadedModel(this.#io, this.#client, this.#options.model, async () => {
        const request = { ...this.#fields, messages: this.#messages, stream: true };
        for await (const line of this.#client.lines(chatLineSchema, "/api/chat", request, signal)) {
          if (this.#options.json) await writeJson(this.#io.stdout, line);
          else {
            await display.thinking(line.message.thinking ?? "");
            await display.text(line.message.content);
          }
          answer += line.message.content;
          if (line.done) summary = line;
        }
      });
    } finally {
      await display.end();
      if (answer !== "" || summary) this.#messages.push({ role: "assistant", content: answer });
      else this.#messages.pop();
    }
    if (summary && !this.#options.json) await display.summarize(summary);
  }
}
