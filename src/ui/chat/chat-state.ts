import { computed, signal } from "@preact/signals";
import { models, showProblem } from "../page-state.ts";
import {
  type ChatSettings,
  type Conversation,
  deleteConversation,
  loadConversations,
  matchesSearch,
  newConversation,
  saveConversation,
} from "./conversation.ts";

/** State of the chat view, read by its components. */
export const conversations = signal<readonly Conversation[]>([]);
export const current = signal<Conversation>(newConversation(""));
export const search = signal("");
/** On narrow screens, the list of conversations covers the chat while this is true. */
export const isListOpen = signal(false);
export const running = signal<AbortController | undefined>(undefined);
/** True if this tab answers the conversation instead of the daemon. */
export const inTab = computed(() => current.value.inTab === true);

export const listedConversations = computed(() =>
  conversations.value
    .filter((each) => search.value.trim() === "" || matchesSearch(each, search.value))
    .toSorted(
      (one, other) => Number(other.isPinned) - Number(one.isPinned) || other.changedAt - one.changedAt,
    ),
);

/** Models that generate text, without those for embeddings and reranking. */
export const chatModels = computed(() => models.value.filter(({ purpose }) => purpose === "generate"));

/** The model that the next answer comes from. */
export const chosenModel = computed(
  () =>
    chatModels.value.find(({ alias }) => alias === current.value.model) ??
    chatModels.value.find(({ is_default: isDefault }) => isDefault) ??
    chatModels.value[0],
);

/** Shows a changed conversation and saves it in IndexedDB. */
export function saveAndShow(conversation: Conversation): void {
  showConversation(conversation);
  saveConversation(conversation).catch(showProblem);
}

/** Shows a changed conversation without saving it. */
export function showConversation(conversation: Conversation): void {
  if (conversation.id === current.value.id) current.value = conversation;
  const others = conversations.value.filter(({ id }) => id !== conversation.id);
  conversations.value = [...others, conversation];
}

/** Starts a conversation with the model, engine and settings of the previous one. */
export function startConversation(): void {
  running.value?.abort();
  search.value = "";
  const conversation = newConversation(chosenModel.value?.alias ?? "", current.value.settings);
  current.value = { ...conversation, inTab: inTab.value };
}

export function setInTab(isEnabled: boolean): void {
  saveIfStarted({ ...current.value, inTab: isEnabled });
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
  saveIfStarted({ ...current.value, settings });
}

export function chooseModel(model: string): void {
  saveIfStarted({ ...current.value, model });
}

/** Saves a changed conversation, unless it has no messages yet. */
function saveIfStarted(conversation: Conversation): void {
  if (conversation.messages.length > 0) saveAndShow(conversation);
  else current.value = conversation;
}

/** Loads the conversations from IndexedDB. */
export async function loadChats(): Promise<void> {
  conversations.value = await loadConversations().catch((error: unknown) => {
    showProblem(error);
    return [];
  });
}
