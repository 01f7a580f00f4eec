import { describe, expect, test } from "vitest";
import {
  branch,
  type ChatMessage,
  type Conversation,
  matches,
  newConversation,
  openCalls,
  showBranch,
  siblings,
  withChanged,
  withMessage,
} from "../../../src/ui/chat/conversation.ts";

function message(id: string, parent: string | undefined, role: ChatMessage["role"] = "user"): ChatMessage {
  return { id, parent, role, content: `text of ${id}` };
}

/** Two questions, the first one with two answers, the second one behind the first answer. */
function conversation(): Conversation {
  return [
    message("q1", undefined),
    message("a1", "q1", "assistant"),
    message("q2", "a1"),
    message("a2", "q1", "assistant"),
  ].reduce(withMessage, newConversation("tiny"));
}

/** The title after a first question. */
function named(content: string): string {
  return withMessage(newConversation("tiny"), { ...message("q", undefined), content }).title;
}

const ids = (messages: readonly ChatMessage[]): string[] => messages.map(({ id }) => id);

describe("a conversation", () => {
  test("shows the branch of what was said last", () => {
    expect(ids(branch(conversation()))).toEqual(["q1", "a2"]);
  });

  test("goes back to another version of a message, with all that was said behind it", () => {
    expect(ids(branch(showBranch(conversation(), "a1")))).toEqual(["q1", "a1", "q2"]);
  });

  test("knows the versions of a message", () => {
    const { messages } = conversation();
    expect(ids(siblings({ messages }, messages[1]!))).toEqual(["a1", "a2"]);
    expect(ids(siblings({ messages }, messages[0]!))).toEqual(["q1"]);
  });

  test("is named by the first line of its first question, cut where it is long", () => {
    expect(named("Hello\nWorld")).toBe("Hello");
    expect(named("x".repeat(100))).toBe(`${"x".repeat(59)}…`);
    expect(conversation().title).toBe("text of q1");
  });

  test("changes a message in place, without moving to it", () => {
    const changed = withChanged(conversation(), { ...message("a1", "q1", "assistant"), content: "new" });
    expect(changed.messages[1]?.content).toBe("new");
    expect(changed.leaf).toBe("a2");
  });

  test("is found by words anywhere in it, in any order and case", () => {
    expect(matches(conversation(), "A2 TEXT")).toBe(true);
    expect(matches(conversation(), "text penguin")).toBe(false);
  });

  test("ends where an imported file leads in a circle", () => {
    const messages = [message("a", "b"), message("b", "a", "assistant")];
    const circle = { ...newConversation("tiny"), messages, leaf: "b" };
    expect(ids(branch(circle))).toEqual(["a", "b"]);
    expect(showBranch(circle, "a").leaf).toBe("b");
  });

  test("knows which calls of its last answer have no result yet", () => {
    const calls = ["one", "two"].map((id) => ({ id, name: "add", arguments: "{}" }));
    const shown = [message("q", undefined), { ...message("a", "q", "assistant"), toolCalls: calls }];
    const result = (callId: string): ChatMessage => ({ ...message(`r-${callId}`, "a", "tool"), callId });
    expect(openCalls(shown)?.calls).toEqual(calls);
    expect(openCalls([...shown, result("two")])?.calls).toEqual(calls.slice(0, 1));
    expect(openCalls([...shown, result("two"), result("one")])?.calls).toEqual([]);
    expect(openCalls([message("q", undefined)])).toBeUndefined();
  });
});
