import { z } from "zod";
import { defineRoute, type Route } from "../../http/route.ts";
import type { ModelServices } from "../services.ts";
import { findModel, requestedName } from "./model-name.ts";
import { runningListSchema, tagListSchema, toRunningList, toTagList } from "./model-entry.ts";
import { showAnswerSchema, showRequestSchema, toShowAnswer } from "./ollama-show.ts";

const tag = "Ollama API";
/**
 * The Ollama version whose API this matches: clients check it before they use newer features, such as the responses
 * API (0.13.4). This one also has the messages API, thinking levels, tool call IDs, log probabilities and dimensions.
 */
const API_VERSION = "0.14.0";
/** Clients check for these words. */
const GREETING = "Ollama is running";

/** The read-only routes, also served while the daemon starts and drains. */
export function informationRoutes({ models, version }: ModelServices): readonly Route[] {
  return [
    ...["/ollama", "/ollama/"].map((path) =>
      defineRoute({
        method: "GET",
        path,
        tag,
        summary: "Check that the API is available",
        answers: [{ contentType: "text/plain", description: GREETING }],
        alwaysOn: true,
        handle: (context) => context.text(GREETING),
      }),
    ),
    defineRoute({
      method: "GET",
      path: "/ollama/api/version",
      tag,
      summary: "Show the version",
      answers: [
        {
          description: "The versions.",
          schema: z.object({
            version: z.string().describe("Ollama version whose API this matches."),
            daybreak: z.string().describe("Version of the daemon."),
          }),
        },
      ],
      alwaysOn: true,
      handle: (context) => context.json({ version: API_VERSION, daybreak: version }),
    }),
    defineRoute({
      method: "GET",
      path: "/ollama/api/tags",
      tag,
      summary: "List the models on disk",
      answers: [{ description: "All models.", schema: tagListSchema }],
      alwaysOn: true,
      async handle(context) {
        return context.json(await toTagList(await models.list()));
      },
    }),
    defineRoute({
      method: "GET",
      path: "/ollama/api/ps",
      tag,
      summary: "List the models in memory",
      answers: [{ description: "The loaded models.", schema: runningListSchema }],
      alwaysOn: true,
      async handle(context) {
        return context.json(await toRunningList(await models.list()));
      },
    }),
    defineRoute({
      method: "POST",
      path: "/ollama/api/show",
      tag,
      summary: "Show a model",
      body: showRequestSchema,
      answers: [{ description: "The model.", schema: showAnswerSchema }],
      alwaysOn: true,
      async handle(context, { body }) {
        const model = await findModel(models, requestedName(body));
        return context.json(toShowAnswer(model, await models.modelfile(model.alias)));
      },
    }),
  ];
}
