/**
 * Parts of requests to the model that ships whose answers have the form that a test asks for, always: greedy, about what
 * any version of the model has learned or bound by a grammar, and with room for all the white space that one allows.
 */

/** The likeliest token, each time. One of the official clients has no field of this name, and sends it all the same. */
export const GREEDY = { temperature: 0 };

/** Room for a short answer that is bound by a grammar, with white space wherever it may be. */
export const AMPLE_TOKENS = 400;

/** What the model thinks about before it answers, when it is told to think. */
export const QUESTION_TO_THINK_ABOUT = "What is 12 + 30?";

/** What it calls a tool named get_weather for. */
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
