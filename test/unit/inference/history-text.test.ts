import { expect, test } from "vitest";
import { historyText } from "../../../src/inference/history-text.ts";

test.for<[string, { type: string; [field: string]: unknown }, string]>([
  [
    "a call without its IDs",
    { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "weather" } },
    '[server_tool_use {"name":"web_search","input":{"query":"weather"}}]',
  ],
  [
    "results without encrypted fields",
    {
      type: "web_search_tool_result",
      tool_use_id: "srvtoolu_1",
      content: [
        {
          type: "web_search_result",
          url: "https://a.b",
          title: "Weather",
          encrypted_content: "x",
          page_age: null,
        },
      ],
    },
    '[web_search_tool_result {"content":[{"url":"https://a.b","title":"Weather"}]}]',
  ],
  [
    "plain texts",
    {
      type: "mcp_tool_result",
      is_error: undefined,
      content: [{ type: "text", text: "One." }, { text: "Two." }],
    },
    "[mcp_tool_result] One.\nTwo.",
  ],
  ["a summary", { type: "compaction", content: "They met.", signature: "x" }, "[compaction] They met."],
  [
    "without images",
    { type: "image_generation_call", result: "iVBORw0KGgo".repeat(100) },
    "[image_generation_call]",
  ],
  [
    "false and zero",
    { type: "mcp_approval_response", approve: false, count: 0 },
    '[mcp_approval_response {"approve":false,"count":0}]',
  ],
])("a part of a conversation that has no type here becomes text: %s", ([, part, text]) => {
  expect(historyText(part)).toBe(text);
});
