import { newId } from "../../../../../src/api/answer-fields.ts";
import {
  beginResponse,
  type ResponseObject,
} from "../../../../../src/api/openai/responses/response-object.ts";
import { responseRequestSchema } from "../../../../../src/api/openai/responses/response-schema.ts";

/** Returns a response with one message. */
export function responseOf(text: string): ResponseObject {
  const content = [{ type: "output_text" as const, text, annotations: [], logprobs: [] }];
  const status = "completed" as const;
  return {
    ...beginResponse(responseRequestSchema.parse({}), "fake"),
    output: [{ type: "message", id: newId("msg"), status, role: "assistant", content }],
  };
}
