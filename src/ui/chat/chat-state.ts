import { computed, signal as value } from "@preact/signals";
import { toError } from "../../errors/to-error.ts";
import {
  type AnswerSummary,
  branch,
  type ChatMessage,
  type ChatSettings,
  type Conversation,
  matches,
  newConversation,
  newId,
  requestMessages,
  withChanged,
  withMessage,
} from "./conversation.ts";
import { deleteConversation, loadConversations, saveConversation } from "./conversation-store.ts";
import { askDaemon, type Fetch, type ListedModel, loadModel, post, request } from "../daemon-api.ts";
import { activity, models, problem, refresh, showProblem } from "../page-state.ts";
import { storedAlone } from "../stored-models.ts";
import { TabEngine } from "../tab-engine.ts";
import { type AnswerLine, answerLines } from "./answer-lines.ts";

/** An answer is shown so often while it grows: Markdown is made of all of it each time. */
const SHOW_MS = 33;

/** What the chat shows; every part of it reads these. */
export const conversations = value<readonly Conversation[]>([]);
export const current = value<Conversation>(newConversation(""));
export const search = value("");
/** Where there is no room for the list beside the chat. */
export const isListOpen = value(false);
export const running = value<AbortController | undefined>(undefined);
/** Answer in this tab instead of the daemon. */
export const inTab = value(false);

export const listed = computed(() =>
  conversations.value
    .filter((each) => search.value.trim() === "" || matches(each, search.value))
    .toSorted(
      (one, other) => Number(other.isPinned) - Number(one.isPinned) || other.changedAt - one.changedAt,
    ),
);

/** Models that answer; others embed texts or order documents. */
export const answering = computed(() => [
  ...models.value.filter(({ purpose }) => purpose === "generate"),
  ...(inTab.value ? storedAlone.value : []),
]);

/** The model that the next answer comes from. */
export const chosenModel = computed(
  () =>
    answering.value.find(({ alias }) => alias === current.value.model) ??
    answering.value.find(({ is_default: isDefault }) => isDefault) ??
    answering.value[0],
);

/** Keeps a conversation, here and in the browser's storage. */
export function keep(conversation: Conversation): void {
  show(conversation);
  saveConversation(conversation).catch(showProblem);
}

function show(conversation: Conversation): void {
  if (conversation.id === current.value.id) current.value = conversation;
  const others = conversations.value.filter(({ id }) => id !== conversation.id);
  conversations.value = [...others, conversation];
}

export function startConversation(): void {
  running.value?.abort();
  current.value = newConversation(chosenModel.value?.alias ?? "", current.value.settings);
}

export function openConversation(conversation: Conversation): void {
  running.value?.abort();
  current.value = conversation;
}

export function removeConversation({ id }: Conversation): void {
  conversations.value = conversations.value.filter((each) => each.id !== id);
  deleteConversation(id).catch(showProblem);
  if (current.value.id === id) startConversation();
}

export function changeSettings(settings: ChatSettings): void {
  change({ ...current.value, settings });
}

export function chooseModel(model: string): void {
  change({ ...current.value, model });
}

/** A conversation without messages is not kept. */
function change(conversation: Conversation): void {
  if (conversation.messages.length > 0) keep(conversation);
  else current.value = conversation;
}

/** Reads the conversations that the browser has stored. */
export async function loadChats(): Promise<void> {
  conversations.value = await loadConversations().catch((error: unknown) => {
    showProblem(error);
    return [];
  });
}

/**
 * Asks and answers.
 * @param parent - the message that the question follows; undefined: none
 */
export async function ask(
  content: string,
  images: readonly string[],
  parent: string | undefined,
): Promise<void> {
  const question: ChatMessage = {
    id: newId(),
    parent,
    role: "user",
    content,
    ...(images.length > 0 && { images }),
  };
  keep(withMessage(current.value, question));
  await answer(question);
}

/** Answers a question, beside the answers that it has. */
export async function answer(question: ChatMessage): Promise<void> {
  const model = chosenModel.value;
  if (!model) {
    problem.value = "There is no model to answer. Pull one with: daybreak pull";
    return;
  }
  running.value?.abort();
  const controller = new AbortController();
  running.value = controller;
  problem.value = "";
  let message: ChatMessage = {
    id: newId(),
    parent: question.id,
    role: "assistant",
    content: "",
    model: model.alias,
  };
  const { id } = current.value;
  const asked = branch({ ...current.value, leaf: question.id });
  keep(withMessage(current.value, message));
  const update = (changed: Partial<ChatMessage>): void => {
    message = { ...message, ...changed };
    // Not the list beside it, whose order and search would be computed for each piece.
    if (current.value.id === id) current.value = withChanged(current.value, message);
  };
  try {
    const { settings } = current.value;
    const { system: _system, ...sampling } = settings;
    const body = {
      model: model.alias,
      messages: requestMessages(asked, settings),
      // As much as fits, unless a person says less.
      max_tokens: model.context_size,
      ...sampling,
      stream: true,
    };
    await readAnswer(body, await sender(model, controller.signal), controller.signal, update);
  } catch (error) {
    if (!controller.signal.aborted) {
      showProblem(error);
      update({ problem: toError(error).message });
    } else if (message.content === "") update({ problem: "Stopped before the first word." });
  } finally {
    // Pieces of an answer are not stored one by one. A conversation may have been deleted meanwhile.
    const shown =
      current.value.id === id ? current.value : conversations.value.find((each) => each.id === id);
    if (shown) {
      show(withChanged(shown, message));
      await saveConversation(withChanged(shown, message)).catch(showProblem);
    }
    if (running.value === controller) running.value = undefined;
    if (!running.value) activity.value = "";
  }
}

const tab = new TabEngine((text) => (activity.value = text));

async function sender({ alias, state }: ListedModel, signal: AbortSignal): Promise<Fetch> {
  if (inTab.value) {
    const { fetch } = await tab.start(alias, false, signal);
    activity.value = `${alias} answers in this tab …`;
    return fetch;
  }
  if (state !== "loaded") {
    activity.value = `Loading ${alias} …`;
    await loadModel(alias, signal);
    await refresh();
  }
  activity.value = `${alias} answers …`;
  return askDaemon;
}

async function readAnswer(
  body: object,
  send: Fetch,
  signal: AbortSignal,
  update: (changed: Partial<ChatMessage>) => void,
): Promise<void> {
  const begun = performance.now();
  let firstMs: number | undefined;
  let content = "";
  let thinking = "";
  let shownAt = 0;
  const showText = (): void => {
    shownAt = performance.now();
    update({ content, ...(thinking !== "" && { thinking }) });
  };
  const response = await request("/api/chat", post(body, signal), send);
  try {
    for await (const line of answerLines(response)) {
      if (line.error) throw new Error(line.error.message);
      content += line.message?.content ?? "";
      thinking += line.message?.thinking ?? "";
      if (content !== "" || thinking !== "") firstMs ??= performance.now() - begun;
      if (performance.now() - shownAt >= SHOW_MS) showText();
      if (line.done) update({ summary: summaryOf(line, firstMs ?? performance.now() - begun) });
    }
  } finally {
    showText();
  }
}

function summaryOf(line: AnswerLine, firstMs: number): AnswerSummary {
  return {
    promptTokens: line.prompt_tokens ?? 0,
    completionTokens: line.completion_tokens ?? 0,
    firstMs,
    doneReason: line.done_reason ?? "stop",
    ...(line.tokens_per_second !== undefined && { tokensPerSecond: line.tokens_per_second }),
  };
}
