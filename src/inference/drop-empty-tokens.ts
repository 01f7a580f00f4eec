import type { EventReader } from "./event-reader.ts";

/** Drops the log-probabilities of tokens without text, such as the one that ends the generation: clients want those of text. */
export function dropEmptyTokens(): EventReader {
  return (event) => {
    if (event.type !== "text-delta" || !event.logprobs?.some(({ token }) => token === "")) return [event];
    const logprobs = event.logprobs.filter(({ token }) => token !== "");
    return event.text === "" && logprobs.length === 0 ? [] : [{ ...event, logprobs }];
  };
}
