import { z } from "zod";
import { defineRoute, type Route } from "../../http/route.ts";
import type { Services } from "../services.ts";
import { findModel, requestedName } from "./model-name.ts";
import { runningListSchema, tagListSchema, toRunningList, toTagList } from "./model-entry.ts";
import { showAnswerSchema, showRequestSchema, toShowAnswer } from "./ollama-show.ts";

const tag = "Ollama API";
/**
 * The version of Ollama whose API this is: clients ask for a least one before they use what is newer, such as 0.13.4
 * for the responses API. It has that and the messages API beside its own, levels of thinking, ids of tool calls,
 * log-probabilities and dimensions, as the routes here do.
 */
const API_VERSION = "0.14.0";
/** Clients look for these words. */
const GREETING = "Ollama is running";

/** What only reads: served while the daemon starts and drains too. */
export function informationRoutes({ models, version }: Services): readonly Route[] {
  return [
    ...["/ollama", "/ollama/"].map((path) =>
      defineRoute({
        method: "GET",
        path,
        tag,
        summary: "Say that the API is there",
        answers: [{ contentType: "text/plain", description: GREETING }],
        alwaysOn: true,
        handle: (context) => context.text(GREETING),
      }),
    ),
    defineRoute({
      method: "GET",
      path: "/ollama/api/version",
      tag,
      summary: "Tell the version",
      answers: [
        {
          description: "The versions.",
          schema: z.object({
            version: z.string().describe("Version of Ollama whose API this follows."),
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
