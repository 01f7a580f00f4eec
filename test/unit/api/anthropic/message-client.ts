import Anthropic from "@anthropic-ai/sdk";
import { fetchOf, type TestApp } from "../../../support/test-app.ts";

export const PATH = "/v1/messages";
export const messages = [{ role: "user" as const, content: "hi" }];
export const BASE = { model: "fake", max_tokens: 100, messages };

/** Official client, connected to an app without a socket. */
export function clientOf(all: TestApp): Anthropic {
  return new Anthropic({
    baseURL: "http://daybreak.test",
    apiKey: "any",
    fetch: fetchOf(all),
    maxRetries: 0,
  });
}
