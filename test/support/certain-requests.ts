/**
 * Parts of requests to the shipped model whose answers always have the form that a test needs: greedy, about facts that
 * any version of the model has learned or bound by a grammar, and with enough tokens for all white space that a grammar
 * allows.
 */

/** The likeliest token, each time. One of the official clients has no field of this name, and sends it all the same. */
export const GREEDY = { temperature: 0 };

/** Tokens of a short answer that is bound by a grammar, with white space wherever the grammar allows it. */
export const AMPLE_TOKENS = 400;

/** A question for which the model reasons when thinking is on. */
export const QUESTION_TO_THINK_ABOUT = "What is 12 + 30?";

/** A question for which it calls a tool named get_weather. */
export const QUESTION_FOR_WEATHER = "What is the weather in Rome?";

/** A list that goes on beyond any limit of tokens, for seconds: each number takes two of them. */
export const ENDLESS_LIST = {
  type: "array" as const,
  items: { type: "integer" as const, minimum: 0, maximum: 9 },
  minItems: 1000,
};

/** The same for clients that take only objects. */
export const ENDLESS_OBJECT = {
  type: "object" as const,
  properties: { list: ENDLESS_LIST },
  required: ["list"],
  additionalProperties: false,
};
