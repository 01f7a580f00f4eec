import type { Command } from "commander";
import { abortable } from "../../async/abortable.ts";
import { startDaemonIfNone } from "../background/start-daemon-if-none.ts";
import { Conversation } from "../chat/conversation.ts";
import { PipedPrompter } from "../chat/piped-prompter.ts";
import type { Prompter } from "../chat/prompter.ts";
import { CliError, Interruption } from "../cli-error.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { lookForModel } from "../client/look-for-model.ts";
import { EXIT } from "../exit-codes.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import {
  generationFields,
  type GenerationOptions,
  withGenerationOptions,
} from "../options/generation-options.ts";
import { AnswerDisplay } from "../terminal/answer-display.ts";
import { styleFor } from "../terminal/style.ts";
import { writeLine } from "../terminal/write.ts";

const HELP = `/clear        forget the conversation so far
/bye          leave (or Ctrl-D)
/help         this list
"""           begin and end a multi-line message; a \\ at the end of a line also continues it
Ctrl-C        cancel the answer; at the prompt, twice, leave`;

export interface ChatOptions extends ClientOptions, GenerationOptions {}

/** daybreak chat */
export function chatCommand(io: CliIo): Command {
  return withGenerationOptions(clientCommand("chat", "print the lines of the daemon's answers as JSON"))
    .description("have a conversation in the terminal; starts a daemon in the background when none runs")
    .argument("[model]", "model to talk to, as with --model")
    .action(async (named: string | undefined, given: ChatOptions) => {
      await chat(io, named === undefined ? given : { model: named, ...given });
    });
}

/** Has a conversation until its reader ends it. */
export async function chat(io: CliIo, options: ChatOptions): Promise<void> {
  const { model, system, hideThinking, json } = options;
  const fields = await generationFields(options);
  await startDaemonIfNone(io, options);
  const client = connect(io, options);
  // Said before anything is typed.
  const missing = model === undefined ? undefined : await lookForModel(client, model);
  if (missing) throw missing;
  using prompter = await openPrompter(io);
  const conversation = new Conversation(io, client, { model, system, hideThinking, json, fields });
  if (io.stdin.isTTY)
    await writeLine(io.stderr, styleFor(io.stderr, io.env).dim("/help lists the commands."));
  await converse(io, prompter, conversation, options);
}

async function openPrompter(io: CliIo): Promise<Prompter> {
  if (!io.stdin.isTTY || !io.stdout.isTTY) return new PipedPrompter(io);
  const { TerminalPrompter } = await import("../chat/terminal-prompter.ts");
  return new TerminalPrompter(io);
}

async function converse(
  io: CliIo,
  prompter: Prompter,
  conversation: Conversation,
  options: ChatOptions,
): Promise<void> {
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
    else if (text !== "") await answer(io, prompter, conversation, event.text, options);
  }
}

/** Shows the answer to one message. Ctrl-C cancels it, and an error ends it: the conversation goes on. */
async function answer(
  io: CliIo,
  prompter: Prompter,
  conversation: Conversation,
  text: string,
  options: ChatOptions,
): Promise<void> {
  const cancelled = new AbortController();
  using _ = prompter.catchInterrupts(() => cancelled.abort(new Interruption(EXIT.interrupted)));
  try {
    const summary = await conversation.say(text, AbortSignal.any([io.signal, cancelled.signal]));
    if (!summary || options.json) return;
    const display = new AnswerDisplay(io, options);
    await display.cutNote(summary);
    if (options.verbose) await display.statistics(summary);
  } catch (error) {
    if (io.signal.aborted) throw error;
    if (cancelled.signal.aborted) await writeLine(io.stderr, "(cancelled)");
    // At a terminal a person reads it and decides; a script needs the exit code.
    else if (error instanceof CliError && io.stdin.isTTY)
      await writeLine(io.stderr, `daybreak: ${error.message}`);
    else throw error;
  }
}
