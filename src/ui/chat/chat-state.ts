import { computed, signal as value } from "@preact/signals";
import { models, showProblem } from "../page-state.ts";
import {
  type ChatSettings,
  type Conversation,
  deleteConversation,
  loadConversations,
  matches,
  newConversation,
  saveConversation,
} from "./conversation.ts";

/** What the chat shows; every part of it reads these. */
export const conversations = value<readonly Conversation[]>([]);
export const current = value<Conversation>(newConversation(""));
export const search = value("");
/** Where there is no room for the list beside the chat. */
export const isListOpen = value(false);
export const running = value<AbortController | undefined>(undefined);
/** The conversation is answered in this tab instead of the daemon. */
export const inTab = computed(() => current.value.inTab === true);

export const listed = computed(() =>
  conversations.value
    .filter((each) => search.value.trim() === "" || matches(each, search.value))
    .toSorted(
      (one, other) => Number(other.isPinned) - Number(one.isPinned) || other.changedAt - one.changedAt,
    ),
);

/** Models that answer; others embed texts or order documents. */
export const answering = computed(() => models.value.filter(({ purpose }) => purpose === "generate"));

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

/** Shows a conversation as it is now, without storing it. */
export function show(conversation: Conversation): void {
  if (conversation.id === current.value.id) current.value = conversation;
  const others = conversations.value.filter(({ id }) => id !== conversation.id);
  conversations.value = [...others, conversation];
}

/** Begins one with the model, the place and the settings of the one before. */
export function startConversation(): void {
  running.value?.abort();
  search.value = "";
  const begun = newConversation(chosenModel.value?.alias ?? "", current.value.settings);
  current.value = { ...begun, inTab: inTab.value };
}

export function setInTab(isWanted: boolean): void {
  change({ ...current.value, inTab: isWanted });
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
