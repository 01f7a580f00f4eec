import { type IDBPDatabase, openDB } from "idb";
import { z } from "zod";
import { answerTokenSchema } from "../../dialects/native/answer-token.ts";
import type { Conversation } from "./conversation.ts";

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
