import { signal as value } from "@preact/signals";
import { toError } from "../../errors/to-error.ts";
import { fetchDaemon, type Fetch, type ListedModel, loadModel } from "../daemon-api.ts";
import { activity, problem, refresh, showProblem } from "../page-state.ts";
import { IN_BROWSER, refreshStored } from "../stored-models.ts";
import { TabEngine } from "../tab-engine.ts";
import { findTool, offeredTools, runTool } from "../tools/tools.ts";
import { chatRequest } from "./chat-request.ts";
import { answering, chosenModel, conversations, current, inTab, keep, running, show } from "./chat-state.ts";
import {
  branch,
  type ChatMessage,
  newId,
  openCalls,
  saveConversation,
  type TextFile,
  type ToolCall,
  withChanged,
  withMessage,
} from "./conversation.ts";
import { readAnswer } from "./read-answer.ts";

/** A model that calls tools without end is stopped: no task of a chat takes so many rounds. */
const MAX_ROUNDS = 25;

/** Share of the prompt that the running request has read; undefined: no prompt is being read. */
export const promptShare = value<number | undefined>(undefined);

/** What a question brings besides its text. */
interface Attachments {
  readonly images: readonly string[];
  readonly files: readonly TextFile[];
}

/** Where an answer comes from; absent: as chosen for the conversation. */
export interface Source {
  readonly model?: string;
  readonly inTab?: boolean;
}

/**
 * Asks and answers.
 * @param parent - the message that the question follows; undefined: none
 */
export async function ask(
  content: string,
  { images, files }: Attachments,
  parent: string | undefined,
): Promise<void> {
  const question: ChatMessage = {
    id: newId(),
    parent,
    role: "user",
    content,
    ...(images.length > 0 && { images }),
    ...(files.length > 0 && { files }),
  };
  keep(withMessage(current.value, question));
  await answer(question);
}

/** Answers a question or the result of a tool, beside the answers that it has, and runs the tools that are called. */
export async function answer(question: ChatMessage, source: Source = {}): Promise<void> {
  const model = modelOf(source);
  if (!model) return;
  let asked = question;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const message = { id: newId(), parent: asked.id, role: "assistant", content: "" } as const;
    const last = await generate(message, asked.id, model, source.inTab ?? runsInTab(model));
    if (!last) return;
    const result = await runCalls(last);
    if (!result) return;
    asked = result;
  }
  problem.value = `The model has called tools ${MAX_ROUNDS} times in a row and was stopped.`;
}

/** Goes on with an answer that ended too early. */
export async function continueAnswer(message: ChatMessage): Promise<void> {
  const model = modelOf({});
  if (model) await generate(message, message.id, model, runsInTab(model));
}

/** Takes what a person answers for a tool, and goes on when no call is open any longer. */
export async function answerCall(call: ToolCall, content: string): Promise<void> {
  const result = addResult(call, content);
  if (openCalls(branch(current.value))?.calls.length === 0) await answer(result);
}

/** Runs a call that waits for a person's consent. */
export async function runCall(call: ToolCall): Promise<void> {
  const content = await runStoppable(call);
  if (content !== undefined) await answerCall(call, content);
}

function modelOf({ model = chosenModel.value?.alias }: Source): ListedModel | undefined {
  const found = answering.value.find(({ alias }) => alias === model);
  if (!found)
    problem.value = "There is no model to answer. Get one in the room Models, or with: daybreak pull";
  return found;
}

/** A model that the daemon does not have can only run in this tab. */
function runsInTab({ state }: ListedModel): boolean {
  return inTab.value || state === IN_BROWSER;
}

/** Runs the calls that need nobody's consent; the last result, if none is left open. */
async function runCalls(message: ChatMessage): Promise<ChatMessage | undefined> {
  let result: ChatMessage | undefined;
  for (const call of message.toolCalls ?? []) {
    if (findTool(call.name)?.runsByItself !== true) continue;
    const content = await runStoppable(call);
    if (content === undefined) return undefined;
    result = addResult(call, content);
  }
  return openCalls(branch(current.value))?.calls.length === 0 ? result : undefined;
}

/** What a tool gives; undefined when a person has stopped it, or has gone on to another conversation. */
async function runStoppable(call: ToolCall): Promise<string | undefined> {
  const controller = new AbortController();
  const { id } = current.value;
  running.value = controller;
  activity.value = `${call.name} runs …`;
  const content = await runTool(call, controller.signal);
  if (running.value === controller) {
    running.value = undefined;
    activity.value = "";
  }
  return controller.signal.aborted || current.value.id !== id ? undefined : content;
}

function addResult({ id: callId }: ToolCall, content: string): ChatMessage {
  const parent = branch(current.value).at(-1)?.id;
  const result: ChatMessage = { id: newId(), parent, role: "tool", content, callId };
  keep(withMessage(current.value, result));
  return result;
}

/**
 * Generates an answer, or goes on with one.
 * @param after - the last message of the branch that the model reads
 * @returns the answer with all of its text; undefined when it was stopped or failed
 */
async function generate(
  begun: ChatMessage,
  after: string,
  model: ListedModel,
  isFromTab: boolean,
): Promise<ChatMessage | undefined> {
  running.value?.abort();
  const controller = new AbortController();
  const { signal } = controller;
  running.value = controller;
  problem.value = "";
  const { id, settings } = current.value;
  const { problem: _problem, summary: _summary, ...kept } = begun;
  let message: ChatMessage = { ...kept, model: model.alias, ...(isFromTab && { isFromTab }) };
  const asked = branch({ ...current.value, leaf: after });
  keep(after === begun.id ? withChanged(current.value, message) : withMessage(current.value, message));
  const onChange = (changed: Partial<ChatMessage>): void => {
    message = { ...message, ...changed };
    // Not the list beside it, whose order and search would be computed for each piece.
    if (current.value.id === id) current.value = withChanged(current.value, message);
  };
  let isWhole = false;
  try {
    // As many tokens as fit, unless a person says fewer.
    const limits = { max_tokens: model.context_size, return_progress: true, stream: true };
    const body = { model: model.alias, ...limits, ...chatRequest(asked, settings, offeredTools()) };
    const send = isFromTab ? await startTab(model, signal) : await startDaemon(model, signal);
    const onPrompt = (share: number): void => void (promptShare.value = share < 1 ? share : undefined);
    await readAnswer(body, send, begun, { signal, onChange, onPrompt });
    isWhole = true;
  } catch (error) {
    if (!signal.aborted) {
      showProblem(error);
      onChange({ problem: toError(error).message });
    } else if (message.content === "") onChange({ problem: "Stopped before the first word." });
  } finally {
    // Pieces of an answer are not stored one by one. A conversation may have been deleted meanwhile.
    const shown =
      current.value.id === id ? current.value : conversations.value.find((each) => each.id === id);
    if (shown) {
      show(withChanged(shown, message));
      await saveConversation(withChanged(shown, message)).catch(showProblem);
    }
    if (running.value === controller) {
      running.value = undefined;
      promptShare.value = undefined;
      activity.value = "";
    }
  }
  return isWhole && current.value.id === id ? message : undefined;
}

const tab = new TabEngine((text) => (activity.value = text));

async function startTab({ alias }: ListedModel, signal: AbortSignal): Promise<Fetch> {
  const { fetch } = await tab.start(alias, false, signal);
  await refreshStored();
  activity.value = `${alias} answers in this tab …`;
  return fetch;
}

async function startDaemon({ alias, state }: ListedModel, signal: AbortSignal): Promise<Fetch> {
  if (state !== "loaded") {
    activity.value = `Loading ${alias} …`;
    await loadModel(alias, signal);
    await refresh();
  }
  activity.value = `${alias} answers …`;
  return fetchDaemon;
}
