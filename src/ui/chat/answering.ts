import { signal as createSignal } from "@preact/signals";
import { toError } from "../../errors/service-error.ts";
import { fetchDaemon, type Fetch, type ListedModel, loadModel } from "../daemon-api.ts";
import { activity, problem, refresh, showProblem } from "../page-state.ts";
import { IN_BROWSER, refreshStored } from "../stored-models.ts";
import { TabEngine } from "../tab-engine.ts";
import { findTool, offeredTools, runTool } from "../tools/tools.ts";
import { chatRequest } from "./chat-request.ts";
import {
  chatModels,
  chosenModel,
  conversations,
  current,
  inTab,
  saveAndShow,
  running,
  showConversation,
} from "./chat-state.ts";
import {
  branch,
  type ChatMessage,
  newId,
  callsWithoutResult,
  saveConversation,
  type TextFile,
  type ToolCall,
  withReplaced,
  withMessage,
} from "./conversation.ts";
import { readAnswer } from "./read-answer.ts";

/** Stops a model that calls tools in an endless loop. */
const MAX_ROUNDS = 25;

/** Fraction of the prompt that was processed, 0 to 1; undefined unless a prompt is being processed. */
export const promptProgress = createSignal<number | undefined>(undefined);

interface Attachments {
  readonly images: readonly string[];
  readonly files: readonly TextFile[];
}

/** The model and engine of an answer; defaults to the conversation's choice. */
export interface AnswerSource {
  readonly model?: string;
  readonly inTab?: boolean;
}

/**
 * Adds a question to the conversation and generates its answer.
 * @param parent - the previous message, if there is one
 */
export async function sendQuestion(
  content: string,
  { images, files }: Attachments,
  parent: string | undefined,
): Promise<void> {
  const question: ChatMessage = {
    id: newId(),
    parent,
    role: "user",
    content,
    ...(images.length > 0 && { images: [...images] }),
    ...(files.length > 0 && { files: [...files] }),
  };
  saveAndShow(withMessage(current.value, question));
  await answer(question);
}

/**
 * Generates a new answer to a question or a tool result, next to existing answers. Runs the tools that the model calls,
 * and continues with their results.
 */
export async function answer(question: ChatMessage, source: AnswerSource = {}): Promise<void> {
  const model = modelOf(source);
  if (!model) return;
  let previous = question;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const message = { id: newId(), parent: previous.id, role: "assistant", content: "" } as const;
    const last = await generate(message, previous.id, model, source.inTab ?? mustRunInTab(model));
    if (!last) return;
    const result = await runCalls(last);
    if (!result) return;
    previous = result;
  }
  problem.value = `The model has called tools ${MAX_ROUNDS} times in a row and was stopped.`;
}

/** Continues an answer that ended too early. */
export async function continueAnswer(message: ChatMessage): Promise<void> {
  const model = modelOf({});
  if (model) await generate(message, message.id, model, mustRunInTab(model));
}

/** Stores the result of a tool call, and continues the conversation when all calls have results. */
export async function answerCall(call: ToolCall, content: string): Promise<void> {
  const result = addToolResult(call, content);
  if (callsWithoutResult(branch(current.value))?.calls.length === 0) await answer(result);
}

/** Runs a tool call that waited for the user's consent. */
export async function runCall(call: ToolCall): Promise<void> {
  const content = await runStoppable(call);
  if (content !== undefined) await answerCall(call, content);
}

function modelOf({ model = chosenModel.value?.alias }: AnswerSource): ListedModel | undefined {
  const found = chatModels.value.find(({ alias }) => alias === model);
  if (!found)
    problem.value = "There is no model to answer. Get one in the view Models, or with: daybreak pull";
  return found;
}

/** A model that the daemon does not have can only run in this tab. */
function mustRunInTab({ state }: ListedModel): boolean {
  return inTab.value || state === IN_BROWSER;
}

/** Runs the calls that need no consent. Returns the last result if all calls of the message have results. */
async function runCalls(message: ChatMessage): Promise<ChatMessage | undefined> {
  let result: ChatMessage | undefined;
  for (const call of message.toolCalls ?? []) {
    if (findTool(call.name)?.isAutomatic !== true) continue;
    const content = await runStoppable(call);
    if (content === undefined) return undefined;
    result = addToolResult(call, content);
  }
  return callsWithoutResult(branch(current.value))?.calls.length === 0 ? result : undefined;
}

/** Runs a tool. Returns undefined if the user stopped it or opened another conversation. */
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

function addToolResult({ id: callId }: ToolCall, content: string): ChatMessage {
  const parent = branch(current.value).at(-1)?.id;
  const result: ChatMessage = { id: newId(), parent, role: "tool", content, callId };
  saveAndShow(withMessage(current.value, result));
  return result;
}

/**
 * Generates an answer, or continues one.
 * @param initial - the empty message of a new answer, or the answer to continue
 * @param lastId - the last message of the branch that the model reads
 * @returns the complete answer; undefined if it was stopped or failed
 */
async function generate(
  initial: ChatMessage,
  lastId: string,
  model: ListedModel,
  isFromTab: boolean,
): Promise<ChatMessage | undefined> {
  running.value?.abort();
  const controller = new AbortController();
  const { signal } = controller;
  running.value = controller;
  problem.value = "";
  const { id, settings } = current.value;
  const { problem: _problem, summary: _summary, ...continued } = initial;
  let message: ChatMessage = { ...continued, model: model.alias, ...(isFromTab && { isFromTab }) };
  const history = branch({ ...current.value, leaf: lastId });
  saveAndShow(
    lastId === initial.id ? withReplaced(current.value, message) : withMessage(current.value, message),
  );
  const onChange = (changed: Partial<ChatMessage>): void => {
    message = { ...message, ...changed };
    // The list of conversations is not updated: its order and search would be computed again for each token.
    if (current.value.id === id) current.value = withReplaced(current.value, message);
  };
  let isComplete = false;
  try {
    // By default, the answer may fill the context.
    const limits = { max_tokens: model.context_size, return_progress: true, stream: true };
    const body = { model: model.alias, ...limits, ...chatRequest(history, settings, offeredTools()) };
    const send = isFromTab ? await startTabEngine(model, signal) : await loadInDaemon(model, signal);
    const onPrompt = (share: number): void => void (promptProgress.value = share < 1 ? share : undefined);
    await readAnswer(body, send, initial, { signal, onChange, onPrompt });
    isComplete = true;
  } catch (error) {
    if (!signal.aborted) {
      showProblem(error);
      onChange({ problem: toError(error).message });
    } else if (message.content === "") onChange({ problem: "Stopped before the first word." });
  } finally {
    // The answer is stored once, when it ends. Its conversation may have been deleted by then.
    const conversation =
      current.value.id === id ? current.value : conversations.value.find((each) => each.id === id);
    if (conversation) {
      showConversation(withReplaced(conversation, message));
      await saveConversation(withReplaced(conversation, message)).catch(showProblem);
    }
    if (running.value === controller) {
      running.value = undefined;
      promptProgress.value = undefined;
      activity.value = "";
    }
  }
  return isComplete && current.value.id === id ? message : undefined;
}

const tab = new TabEngine((text) => (activity.value = text));

async function startTabEngine({ alias }: ListedModel, signal: AbortSignal): Promise<Fetch> {
  const { fetch } = await tab.start(alias, false, signal);
  await refreshStored();
  activity.value = `${alias} answers in this tab …`;
  return fetch;
}

async function loadInDaemon({ alias, state }: ListedModel, signal: AbortSignal): Promise<Fetch> {
  if (state !== "loaded") {
    activity.value = `Loading ${alias} …`;
    await loadModel(alias, {}, signal);
    await refresh();
  }
  activity.value = `${alias} answers …`;
  return fetchDaemon;
}
