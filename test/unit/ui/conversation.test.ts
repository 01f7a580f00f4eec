import { describe, expect, test } from "vitest";
import {
  branch,
  type ChatMessage,
  type Conversation,
  matchesSearch,
  newConversation,
  callsWithoutResult,
  showBranch,
  siblings,
  withReplaced,
  withMessage,
} from "../../../src/ui/chat/conversation.ts";

function message(id: string, parent: string | undefined, role: ChatMessage["role"] = "user"): ChatMessage {
  return { id, parent, role, content: `text of ${id}` };
}

/** Two questions: the first has two answers, and the second follows the first answer. */
function conversation(): Conversation {
  return [
    message("q1", undefined),
    message("a1", "q1", "assistant"),
    message("q2", "a1"),
    message("a2", "q1", "assistant"),
  ].reduce(withMessage, newConversation("tiny"));
}

/** Returns the title of a conversation with this first question. */
function named(content: string): string {
  return withMessage(newConversation("tiny"), { ...message("q", undefined), content }).title;
}

const ids = (messages: readonly ChatMessage[]): string[] => messages.map(({ id }) => id);

describe("a conversation", () => {
  test("shows the branch of the newest message", () => {
    expect(ids(branch(conversation()))).toEqual(["q1", "a2"]);
  });

  test("shows another version of a message, with all messages that follow it", () => {
    expect(ids(branch(showBranch(conversation(), "a1")))).toEqual(["q1", "a1", "q2"]);
  });

  test("lists all versions of a message", () => {
    const { messages } = conversation();
    expect(ids(siblings({ messages }, messages[1]!))).toEqual(["a1", "a2"]);
    expect(ids(siblings({ messages }, messages[0]!))).toEqual(["q1"]);
  });

  test("takes its title from the first line of the first question, truncated if it is long", () => {
    expect(named("Hello\nWorld")).toBe("Hello");
    expect(named("x".repeat(100))).toBe(`${"x".repeat(59)}…`);
    expect(conversation().title).toBe("text of q1");
  });

  test("replaces a message without changing the visible branch", () => {
    const changed = withReplaced(conversation(), { ...message("a1", "q1", "assistant"), content: "new" });
    expect(changed.messages[1]?.content).toBe("new");
    expect(changed.leaf).toBe("a2");
  });

  test("matches a search if it contains all words, in any order and case", () => {
    expect(matchesSearch(conversation(), "A2 TEXT")).toBe(true);
    expect(matchesSearch(conversation(), "text penguin")).toBe(false);
  });

  test("ends a branch if the parents in an imported file form a cycle", () => {
    const messages = [message("a", "b"), message("b", "a", "assistant")];
    const circle = { ...newConversation("tiny"), messages, leaf: "b" };
    expect(ids(branch(circle))).toEqual(["a", "b"]);
    expect(showBranch(circle, "a").leaf).toBe("b");
  });

  test("finds the tool calls of the last answer that have no result yet", () => {
    const calls = ["one", "two"].map((id) => ({ id, name: "add", arguments: "{}" }));
    const messages = [message("q", undefined), { ...message("a", "q", "assistant"), toolCalls: calls }];
    const result = (callId: string): ChatMessage => ({ ...message(`r-${callId}`, "a", "tool"), callId });
    expect(callsWithoutResult(messages)?.calls).toEqual(calls);
    expect(callsWithoutResult([...messages, result("two")])?.calls).toEqual(calls.slice(0, 1));
    expect(callsWithoutResult([...messages, result("two"), result("one")])?.calls).toEqual([]);
    expect(callsWithoutResult([message("q", undefined)])).toBeUndefined();
  });
});
