import { expect, test } from "vitest";
import {
  messageBatchFormat,
  MESSAGES_PATH,
} from "../../../../../src/api/anthropic/batches/message-batch-object.ts";

test.each([{ model: 5 }, { model: ["m"], messages: "none" }, {}])(
  "an invalid request with %j fails when it runs and does not reject its batch",
  (params) => {
    const line = { custom_id: "one", params };
    expect(messageBatchFormat.parseLine(line, MESSAGES_PATH)).toMatchObject({ customId: "one", model: "" });
    expect(messageBatchFormat.request(line, MESSAGES_PATH)).toEqual({
      path: MESSAGES_PATH,
      body: JSON.stringify(params),
    });
  },
);
