import { expect, test } from "vitest";
import {
  messageBatchFormat,
  MESSAGES_PATH,
} from "../../../../../src/api/anthropic/batches/message-batch-object.ts";

test.each([{ model: 5 }, { model: ["m"], messages: "none" }, {}])(
  "a request with %j is refused by the route when it is run, not with all others of its batch",
  (params) => {
    const line = { custom_id: "one", params };
    expect(messageBatchFormat.read(line, MESSAGES_PATH)).toMatchObject({ customId: "one", model: "" });
    expect(messageBatchFormat.request(line, MESSAGES_PATH)).toEqual({
      path: MESSAGES_PATH,
      body: JSON.stringify(params),
    });
  },
);
