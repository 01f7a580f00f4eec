import { expect, test } from "vitest";
import { withReadableCalls } from "../../../src/inference/readable-calls.ts";

test.each([
  ["none", "", "{}"],
  ["blank ones", " \n", "{}"],
  ["an object", '{"a": 1}', '{"a": 1}'],
  ["what the length has cut off", '{"city": "Par', '"{\\"city\\": \\"Par"'],
])("arguments that are %s become JSON", (_, written, read) => {
  const call = { id: "c", name: "f", arguments: written };
  const [message] = withReadableCalls([{ role: "assistant", content: [], toolCalls: [call] }]);
  expect(message?.toolCalls).toEqual([{ ...call, arguments: read }]);
});
