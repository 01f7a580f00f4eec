import { type IDBPDatabase, openDB } from "idb";
import { z } from "zod";
import { type AnswerToken, answerTokenSchema } from "../../api/native/native-answer-fields.ts";

/** Settings of a conversation, named as in requests; absent: the model's own. */
export interface ChatSettings {
  readonly system?: string;
  readonly temperature?: number;
  readonly top_p?: number;
  readonly top_k?: number;
  readonly min_p?: number;
  readonly repeat_penalty?: number;
  readonly presence_penalty?: number;
  readonly frequency_penalty?: number;
  readonly seed?: number;
  readonly max_tokens?: number;
  /** Texts that end an answer. */
  readonly stop?: readonly string[];
  readonly think?: boolean;
  /** "json", or a JSON Schema as text. */
  readonly format?: string;
  /** Report how likely each token was. */
  readonly logprobs?: boolean;
}

/** What an answer took. */
export interface AnswerSummary {
  readonly promptTokens: number;
  /** Of the prompt's tokens, those that were still in the KV cache. */
  readonly cachedTokens?: number;
  readonly completionTokens: number;
  /** Milliseconds from the question to the first piece of text. */
  readonly firstMs: number;
  readonly tokensPerSecond?: number;
  readonly doneReason: string;
}

/** A call of a tool in an answer. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON, as the model wrote it. */
  readonly arguments: string;
}

/** A file that was sent as text. */
export interface TextFile {
  readonly name: string;
  readonly text: string;
}

export interface ChatMessage {
  readonly id: string;
  /** The message that it answers or follows; undefined for the first. */
  readonly parent: string | undefined;
  /** tool: the result of a call. */
  readonly role: "user" | "assistant" | "tool";
  readonly content: string;
  readonly thinking?: string;
  /** As data URLs. */
  readonly images?: readonly string[];
  readonly files?: readonly TextFile[];
  readonly toolCalls?: readonly ToolCall[];
  /** Of a result: the call. */
  readonly callId?: string;
  /** Of an answer: the model that gave it. */
  readonly model?: string;
  /** Of an answer: the engine of the browser gave it, not the daemon's. */
  readonly isFromTab?: boolean;
  /** Of an answer, if they were asked for. */
  readonly tokens?: readonly AnswerToken[];
  readonly summary?: AnswerSummary;
  /** Why the answer ended too early. */
  readonly problem?: string;
}

/** A tree of messages: an edited question or a repeated answer is a branch beside the first one. */
export interface Conversation {
  readonly id: string;
  readonly title: string;
  readonly isPinned: boolean;
  /** Milliseconds since 1970. */
  readonly changedAt: number;
  readonly model: string;
  /** Answered by the engine of the tab. */
  readonly inTab?: boolean;
  readonly settings: ChatSettings;
  /** In the order in which they were written. */
  readonly messages: readonly ChatMessage[];
  /** The last message of the branch that is shown. */
  readonly leaf: string | undefined;
}

const TITLE_LENGTH = 60;

/** A name that nothing else has. Unlike randomUUID() it works where a page came over HTTP from another machine. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function newConversation(model: string, settings: ChatSettings = {}): Conversation {
  return {
    id: newId(),
    title: "",
    isPinned: false,
    changedAt: Date.now(),
    model,
    settings,
    messages: [],
    leaf: undefined,
  };
}

/** The messages of the branch that is shown, the first one first. */
export function branch({ messages, leaf }: Pick<Conversation, "messages" | "leaf">): ChatMessage[] {
  const byId = new Map(messages.map((message) => [message.id, message]));
  const shown: ChatMessage[] = [];
  for (let message = byId.get(leaf ?? ""); message; message = byId.get(message.parent ?? "")) {
    shown.push(message);
    // An imported file can lead in a circle.
    byId.delete(message.id);
  }
  return shown.toReversed();
}

/** Adds a message behind another one, and shows its branch. The first question names the conversation. */
export function withMessage(conversation: Conversation, message: ChatMessage): Conversation {
  const title =
    conversation.title === "" && message.role === "user" ? titleOf(message.content) : conversation.title;
  return {
    ...conversation,
    title,
    changedAt: Date.now(),
    messages: [...conversation.messages, message],
    leaf: message.id,
  };
}

/** Replaces a message, such as an answer that grows. */
export function withChanged(conversation: Conversation, message: ChatMessage): Conversation {
  const messages = conversation.messages.map((each) => (each.id === message.id ? message : each));
  return { ...conversation, messages };
}

/** The messages beside one: other versions of the same question or answer, and itself. */
export function siblings(
  { messages }: Pick<Conversation, "messages">,
  { parent, role }: ChatMessage,
): ChatMessage[] {
  return messages.filter((each) => each.parent === parent && each.role === role);
}

/** Shows another version of a message, with what was said last behind it. */
export function showBranch(conversation: Conversation, id: string): Conversation {
  let leaf = id;
  const passed = new Set<string>();
  for (;;) {
    passed.add(leaf);
    const next = conversation.messages.findLast(({ parent }) => parent === leaf);
    if (!next || passed.has(next.id)) return { ...conversation, leaf };
    leaf = next.id;
  }
}

function titleOf(text: string): string {
  const [line = ""] = text.trim().split("\n");
  return line.length > TITLE_LENGTH ? `${line.slice(0, TITLE_LENGTH - 1)}…` : line;
}

/** Whether the words of a search are all in a conversation. */
export function matches(conversation: Conversation, search: string): boolean {
  const text = [conversation.title, ...conversation.messages.map(({ content }) => content)]
    .join("\n")
    .toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** The calls at the end of a branch that have no result yet, with the answer that made them. */
export function openCalls(
  shown: readonly ChatMessage[],
): { readonly message: ChatMessage; readonly calls: readonly ToolCall[] } | undefined {
  const message = shown.findLast(({ role }) => role !== "tool");
  if (!message?.toolCalls) return undefined;
  const answered = new Set(shown.slice(shown.indexOf(message)).map(({ callId }) => callId));
  return { message, calls: message.toolCalls.filter(({ id }) => !answered.has(id)) };
}

const NAME = "daybreak";
const STORE = "conversations";

const messageSchema = z.looseObject({
  id: z.string(),
  parent: z.string().optional(),
  role: z.enum(["user", "assistant", "tool"]),
  content: z.string(),
  thinking: z.string().optional(),
  images: z.array(z.string().startsWith("data:image/")).optional(),
  files: z.array(z.object({ name: z.string(), text: z.string() })).optional(),
  toolCalls: z.array(z.object({ id: z.string(), name: z.string(), arguments: z.string() })).optional(),
  callId: z.string().optional(),
  model: z.string().optional(),
  isFromTab: z.boolean().optional(),
  tokens: z.array(answerTokenSchema).optional(),
  problem: z.string().optional(),
  summary: z
    .object({
      promptTokens: z.number(),
      cachedTokens: z.number().optional(),
      completionTokens: z.number(),
      firstMs: z.number(),
      tokensPerSecond: z.number().optional(),
      doneReason: z.string(),
    })
    .optional(),
});

export const settingsSchema = z.object({
  system: z.string().optional(),
  temperature: z.number().optional(),
  top_p: z.number().optional(),
  top_k: z.number().optional(),
  min_p: z.number().optional(),
  repeat_penalty: z.number().optional(),
  presence_penalty: z.number().optional(),
  frequency_penalty: z.number().optional(),
  seed: z.number().optional(),
  max_tokens: z.number().optional(),
  stop: z.array(z.string()).optional(),
  think: z.boolean().optional(),
  format: z.string().optional(),
  logprobs: z.boolean().optional(),
});

const conversationSchema = z.object({
  id: z.string(),
  title: z.string(),
  isPinned: z.boolean(),
  changedAt: z.number(),
  model: z.string(),
  inTab: z.boolean().optional(),
  settings: settingsSchema,
  messages: z.array(messageSchema),
  leaf: z.string().optional(),
});

const exportSchema = z.object({
  daybreak_conversations: z.literal(1),
  conversations: z.array(conversationSchema),
});

let opening: Promise<IDBPDatabase> | undefined;
async function open(): Promise<IDBPDatabase> {
  opening ??= openDB(NAME, 1, {
    upgrade: (database) => void database.createObjectStore(STORE, { keyPath: "id" }),
  });
  return await opening;
}

/** All conversations that this browser keeps for this site. */
export async function loadConversations(): Promise<Conversation[]> {
  const stored: Conversation[] = await (await open()).getAll(STORE);
  return stored;
}

export async function saveConversation(conversation: Conversation): Promise<void> {
  await (await open()).put(STORE, conversation);
}

export async function deleteConversation(id: string): Promise<void> {
  await (await open()).delete(STORE, id);
}

/** Conversations as a file. */
export function printConversations(conversations: readonly Conversation[]): string {
  return `${JSON.stringify({ daybreak_conversations: 1, conversations }, undefined, 2)}\n`;
}

/**
 * The conversations of a file; those that are here already are replaced.
 * @throws Error with a message for people when it is another file
 */
export function parseConversations(text: string): Conversation[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error("The file is not JSON.", { cause: error });
  }
  const { data, error } = exportSchema.safeParse(value);
  if (!data)
    throw new Error("The file does not hold conversations that Daybreak has exported.", { cause: error });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- optional fields are absent, never undefined: it was JSON
  return data.conversations as unknown as Conversation[];
}
