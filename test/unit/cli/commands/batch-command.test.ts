import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { createAdaptorServer } from "@hono/node-server";
import { expect, onTestFinished, test } from "vitest";
import { Interruption } from "../../../../src/cli/cli-error.ts";
import { main } from "../../../../src/cli/main.ts";
import { commandLine } from "../../../../src/cli/terminal/format.ts";
import { type BatchApp, batchApp } from "../../../support/batch-app.ts";
import { eventsOf } from "../../../support/fake-engine.ts";
import { ABLE } from "../../../support/test-app.ts";
import { fakeIo, runCli } from "../run-cli.ts";

interface Setup extends Pick<BatchApp, "engine"> {
  readonly url: string;
  /** Runs the command against the daemon. */
  readonly batch: (...words: readonly string[]) => ReturnType<typeof runCli>;
  /** Path of a file in a temporary folder, written if there are lines. */
  readonly file: (name: string, lines?: readonly unknown[]) => string;
}

async function setUp(): Promise<Setup> {
  const app = await batchApp({ answer: eventsOf("Grüße") });
  const server = createAdaptorServer({ fetch: app.app.fetch });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-cli-"));
  onTestFinished(async () => {
    await new Promise((resolve) => server.close(resolve));
    await app[Symbol.asyncDispose]();
    for (const each of [folder, app.folder]) rmSync(each, { recursive: true, force: true });
  });
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  return {
    engine: app.engine,
    url,
    batch: async (...words) => await runCli(["batch", ...words, "--url", url]),
    file: (name, lines) => {
      const file = path.join(folder, name);
      if (lines) writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
      return file;
    },
  };
}

function request(id: string, body: object = {}): object {
  const messages = [{ role: "user", content: `Say ${id}` }];
  return {
    custom_id: id,
    method: "POST",
    url: "/v1/chat/completions",
    body: { model: ABLE.alias, messages, ...body },
  };
}

function idsIn(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    if (line === "") return [];
    const { custom_id: id }: { custom_id: string } = JSON.parse(line);
    return [id];
  });
}

test("answers a file once and resumes its batch for the same content", async () => {
  const { batch, file, engine } = await setUp();
  const input = file("in.jsonl", [request("one"), request("two")]);
  const first = await batch(input);
  expect(first).toMatchObject({ code: 0, stderr: expect.stringMatching(/^Created batch_\w+\.\n$/) });
  expect(idsIn(first.stdout)).toEqual(["one", "two"]);
  expect(first.stdout).toContain("Grüße");
  const output = file("out.jsonl");
  const second = await batch(input, "--output", output);
  expect(second.stderr).toMatch(/^Going on with batch_\w+, which is completed\.\nWrote 2 answers to /);
  expect(readFileSync(output, "utf8")).toBe(first.stdout);
  expect(engine.requests).toHaveLength(2);
  await batch(input, "--new");
  expect(engine.requests).toHaveLength(4);
});

test("prints failed requests and exits with 1", async () => {
  const { batch, file } = await setUp();
  const input = file("in.jsonl", [request("one", { messages: 5 }), request("two")]);
  const { code, stdout, stderr } = await batch(input);
  expect(idsIn(stdout)).toEqual(["two", "one"]);
  expect(stderr).toMatch(/1 of 2 requests did not succeed \(invalid_\w+: 1\)\./);
  expect(code).toBe(1);
  expect((await batch(input)).stderr).toContain(
    "completed.\n1 of its 2 requests did not succeed; --new runs the file again.\n",
  );
});

test("reports invalid lines and files", async () => {
  const { batch, file } = await setUp();
  const input = file("in.jsonl", [request("one"), request("one")]);
  const { code, stderr } = await batch(input);
  expect(stderr).toContain('line 2: The custom_id "one" is that of an earlier line');
  expect(code).toBe(2);
  writeFileSync(input, "no JSON");
  expect((await batch(input)).stderr).toContain("its first line must be a JSON object with a url");
  expect((await batch(file("missing.jsonl"))).code).toBe(4);
  expect((await batch(path.dirname(input))).stderr).toMatch(/ is a folder; name a JSONL file of requests\./);
  expect(await batch("-")).toMatchObject({ code: 2, stderr: expect.stringContaining("Name a file") });
});

test("explains where to send requests for Anthropic's API", async () => {
  const { batch, file } = await setUp();
  const params = { model: "tiny", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] };
  const each = { custom_id: "one", params };
  const sent = { custom_id: "one", method: "POST", url: "/v1/messages", body: params };
  for (const first of [each, sent, { requests: [each] }]) {
    const input = file("in.jsonl");
    writeFileSync(input, JSON.stringify(first));
    const { code, stderr } = await batch(input);
    expect(stderr).toContain("POST /v1/messages/batches");
    expect(code).toBe(2);
  }
});

test("prints how to continue after an interruption, while the daemon continues the batch", async () => {
  const { batch, file, engine, url } = await setUp();
  const go = Promise.withResolvers<void>();
  engine.script = async function* () {
    await go.promise;
    yield* eventsOf("Hello");
  };
  const input = file("in.jsonl", [request("one")]);
  const { io, interrupt, output } = fakeIo();
  const words = [input, "-o", file("my answers.jsonl"), "--url", url];
  const running = main(["batch", ...words], io);
  await expect.poll(() => engine.requests.length, { interval: 5 }).toBe(1);
  interrupt(new Interruption(130));
  expect(await running).toBe(130);
  const [, id = ""] = /Created (\S+)\./.exec(output().stderr) ?? [];
  expect(output().stderr).toContain(
    `The daemon goes on with ${id}. To watch it again: ${commandLine(["batch", ...words])}\n` +
      `To cancel it: daybreak batch cancel ${id} --url ${url}\n`,
  );
  expect((await batch("output", id)).code).toBe(5);
  go.resolve();
  expect(await batch(input)).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`Going on with ${id}, which is `),
  });
});

test("lists, shows and cancels batches", async () => {
  const { batch, file, engine } = await setUp();
  expect((await batch("list")).stdout).toMatch(/^ID +STATUS/);
  const input = file("in.jsonl", [request("one")]);
  const done = await batch(input, "--json");
  const { id }: { id: string } = JSON.parse(done.stdout);
  expect((await batch("list")).stdout).toMatch(new RegExp(`${id} +completed +1/1 +0 +0 +\\S+ +in\\.jsonl\n`));
  expect((await batch("show", id)).stdout).toMatch(/requests +1, 1 completed, 0 failed/);
  expect(idsIn((await batch("output", id)).stdout)).toEqual(["one"]);
  expect(await batch("cancel", id)).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("is completed"),
  });
  expect((await batch("show", "batch_unknown")).code).toBe(4);
  expect((await batch("show")).code).toBe(2);
  expect((await batch("list", "extra")).code).toBe(2);
  const listed: unknown = JSON.parse((await batch("list", "--json")).stdout);
  expect(listed).toMatchObject({ object: "list", data: [{ id }], first_id: id, has_more: false });
  expect(engine.requests).toHaveLength(1);
});

test("-o never overwrites a file with other content and checks the path before sending requests", async () => {
  const { batch, file, engine } = await setUp();
  const input = file("in.jsonl", [request("one")]);
  const content = readFileSync(input, "utf8");
  expect(await batch(input, "-o", input, "--force")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("is the file of requests"),
  });
  expect(await batch(input, "-o", file("no/such/folder.jsonl"))).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/There is no folder \S+no.such; make it, or name another/),
  });
  const taken = file("taken.jsonl", ["mine"]);
  expect(await batch(input, "-o", taken)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("exists already"),
  });
  expect((await batch(input, "-o", path.dirname(input))).code).toBe(2);
  expect(engine.requests).toHaveLength(0);
  expect((await batch("list")).stdout).not.toContain("batch_");
  const output = file("out.jsonl");
  for (let count = 0; count < 2; count += 1) expect((await batch(input, "-o", output)).code).toBe(0);
  expect((await batch(input, "-o", taken)).code).toBe(2);
  expect(readFileSync(taken, "utf8")).toBe('"mine"\n');
  expect((await batch(input, "-o", taken, "--force")).code).toBe(0);
  expect(readFileSync(taken, "utf8")).toBe(readFileSync(output, "utf8"));
  expect(readFileSync(input, "utf8")).toBe(content);
  expect(readdirSync(path.dirname(input)).toSorted()).toEqual(["in.jsonl", "out.jsonl", "taken.jsonl"]);
});

test("resumes an older batch when the newest one was cancelled", async () => {
  const { batch, file, engine, url } = await setUp();
  const input = file("in.jsonl", [request("one")]);
  const older = /Created (\S+)\./.exec((await batch(input)).stderr)?.[1];
  engine.script = async function* (_request, signal) {
    await once(signal, "abort");
    yield* eventsOf("late");
  };
  const { io, output } = fakeIo();
  const running = main(["batch", input, "--new", "--url", url], io);
  await expect.poll(() => engine.requests.length, { interval: 5 }).toBe(2);
  const newer = /Created (\S+)\./.exec(output().stderr)?.[1] ?? "";
  expect((await batch("cancel", newer)).code).toBe(0);
  await running;
  expect(await batch(input)).toMatchObject({
    code: 0,
    stderr: `The newest batch of this file, ${newer}, is cancelled.\nGoing on with ${older}, which is completed.\n`,
  });
});

test("suggests --new when the output was deleted", async () => {
  const { batch, file, engine, url } = await setUp();
  const input = file("in.jsonl", [request("one")]);
  const { output_file_id: output }: { output_file_id: string } = JSON.parse(
    (await batch(input, "--json")).stdout,
  );
  expect((await fetch(`${url}/v1/files/${output}`, { method: "DELETE" })).status).toBe(200);
  const gone = { code: 4, stderr: expect.stringMatching(/has been deleted; .* --new has the file answered/) };
  expect(await batch(input)).toMatchObject(gone);
  expect(await batch(input, "-o", file("taken.jsonl", ["mine"]))).toMatchObject(gone);
  expect((await batch(input, "--new")).code).toBe(0);
  expect(engine.requests).toHaveLength(2);
});

test("distinguishes unanswered lines from failed ones", async () => {
  const { batch, file, engine, url } = await setUp();
  engine.script = async function* (_request, signal) {
    if (engine.requests.length > 1) await once(signal, "abort");
    yield* eventsOf("Hello");
  };
  const input = file("in.jsonl", [request("bad", { messages: 5 }), request("one"), request("two")]);
  const { io, output } = fakeIo();
  const running = main(["batch", input, "--url", url], io);
  const counts = async (): Promise<string> => (await batch("list")).stdout;
  await expect.poll(counts, { interval: 20 }).toMatch(/in_progress +2\/3 +1 +0 /);
  const id = /Created (\S+)\./.exec(output().stderr)?.[1] ?? "";
  await batch("cancel", id);
  await running;
  expect(await counts()).toMatch(/cancelled +2\/3 +1 +1 /);
  expect((await batch("show", id)).stdout).toContain("3, 1 completed, 1 failed, 1 not answered");
  const written = await batch("output", id, "-o", file("out.jsonl"));
  expect(written.stderr).toContain("Wrote 2 answers and 1 request that was not answered to ");
});

test("shows the file name of a batch from another client", async () => {
  const { batch, url } = await setUp();
  const form = new FormData();
  form.set("purpose", "batch");
  form.set("file", new Blob([`${JSON.stringify(request("one"))}\n`]), "theirs.jsonl");
  const uploaded: unknown = await (await fetch(`${url}/v1/files`, { method: "POST", body: form })).json();
  const created = await fetch(`${url}/v1/batches`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      input_file_id: Object(uploaded).id,
      endpoint: "/v1/chat/completions",
      completion_window: "24h",
    }),
  });
  const { id } = Object(await created.json());
  expect((await batch("list")).stdout).toMatch(new RegExp(`${id} .* theirs\\.jsonl\n`));
  expect((await batch("show", id)).stdout).toMatch(/file +theirs\.jsonl/);
});
