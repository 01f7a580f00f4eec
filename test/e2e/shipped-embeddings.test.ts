import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { embeddingsAnswerSchema } from "../../src/api/native/token-routes.ts";
import { modelDetailSchema } from "../../src/api/wire/models.ts";
import { likeness } from "../support/likeness.ts";
import { GUARDED, guardedDaemon, unloadModel } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const EMBED = "daybreak-mini-embed";
const headers = { "content-type": "application/json", authorization: `Bearer ${GUARDED.key}` };

/** Timeout of the first request, which loads the model. */
let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await guardedDaemon();
});

afterAll(() => unloadModel(daemon, EMBED));

async function post(route: string, body: object): Promise<unknown> {
  const response = await fetch(`${daemon.url}${route}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  const answer: unknown = await response.json();
  expect(response.status).toBe(200);
  return answer;
}

async function embed(texts: readonly string[]): Promise<number[][]> {
  const answer = await post("/api/embeddings", { model: EMBED, input: texts });
  return embeddingsAnswerSchema.parse(answer).embeddings;
}

async function showModel(alias: string) {
  return modelDetailSchema.parse(
    await (await fetch(`${daemon.url}/api/models/${alias}`, { headers })).json(),
  );
}

/** Paragraphs of real pages with the page's title in front, as in an index. */
function passagesOf(pages: readonly string[]): { page: string; text: string }[] {
  return pages.flatMap((page) => {
    const markdown = readFileSync(new URL(`../../docs/${page}.md`, import.meta.url), "utf8");
    const title = /^# (.+)$/m.exec(markdown)?.[1] ?? page;
    return markdown
      .split(/\n\s*\n|\n(?=- )/)
      .map((block) =>
        block
          .replaceAll(/[`*|#>]/g, " ")
          .split(/\s+/)
          .slice(0, 60)
          .join(" "),
      )
      .filter((block) => block.length > 40)
      .map((block) => ({ page, text: `${title}. ${block}` }));
  });
}

describe("daybreak-mini-embed", () => {
  test("is a shipped embedding model", async () => {
    expect(await showModel(EMBED)).toMatchObject({ purpose: "embed", source: "shipped" });
  });

  test.each([
    ["Anna bought a lamp.", "A lamp was bought by Anna.", "The train to Oslo is late."],
    ["How do I load a model?", "bring a model into memory", "What is the weather in Rome?"],
    ["The home of Paul is in Vienna.", "Vienna is where Paul lives.", "Paul is fond of honey."],
    ["delete a file", "remove a file", "open a window"],
    ["The piano is broken.", "Something is wrong with the piano.", "The piano is green."],
  ])("ranks %j closer to %j than to %j", async (sentence, same, other) => {
    const [vector, near, far] = await embed([sentence, same, other]);
    expect(likeness(vector!, near!)).toBeGreaterThan(likeness(vector!, far!) + 0.1);
  });

  test("finds the page of the documentation that answers a question", async () => {
    const passages = passagesOf(["cli", "gpu", "hub", "modelfile"]);
    const index = await embed(passages.map(({ text }) => text));
    const questions = {
      "How do I write a comment in a Modelfile?": "modelfile",
      "my graphics card is not found": "gpu",
      "Which exit code does a command return?": "cli",
      "Could a redirect of the hub steal my token?": "hub",
    };
    const vectors = await embed(Object.keys(questions));
    const found = vectors.map((vector) => {
      const scores = index.map((passage) => likeness(vector, passage));
      return passages[scores.indexOf(Math.max(...scores))]!.page;
    });
    expect(found).toEqual(Object.values(questions));
  });
});
