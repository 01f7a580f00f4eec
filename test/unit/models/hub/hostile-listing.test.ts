import { link, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { isRepoFile } from "../../../../src/models/names/name-rules.ts";
import { sha256 } from "../../../support/fixture-hub-content.ts";
import { FILES_HAVE_LINKS, FOLDERS_HAVE_LINKS, linkFolder } from "../../../support/links.ts";
import { content, failureOf, fixtureHub, pull, REPO, SPEC, storeAt } from "./hub-test.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const HOSTILE = [
  "../x.gguf",
  "a/../../x.gguf",
  "..\\x.gguf",
  "a\\..\\..\\x.gguf",
  "/etc/x.gguf",
  "//host/share/x.gguf",
  "\\\\host\\share\\x.gguf",
  "C:/x.gguf",
  "C:x.gguf",
  "x.gguf:stream.gguf",
  "./x.gguf",
  "a//x.gguf",
  "a/",
  "",
  ".hidden.gguf",
  "x\0.gguf",
  "x\n.gguf",
  "nul.gguf",
  "COM1.gguf",
  "a/aux/x.gguf",
  "x.gguf.",
  "x.gguf ",
  "a./x.gguf",
  "a /x.gguf",
  "nul .gguf",
  "conin$.gguf",
  "%2e%2e/x.gguf",
  "x?.gguf",
  "x#y.gguf",
  "e\u0301.gguf",
  "\ud800.gguf",
  `${"x".repeat(256)}.gguf`,
  `${"a/".repeat(40)}x.gguf`,
];

describe("a file name in a listing", () => {
  it.each(HOSTILE)("is rejected: %j", (name) => {
    expect(isRepoFile(name)).toBe(false);
  });

  it.each(["tiny-Q4_K_M.gguf", "Q4_K_M/big-00001-of-00003.gguf", "Modèle (final) v1.0.gguf", "refs/pr/1"])(
    "is accepted: %j",
    (name) => {
      expect(isRepoFile(name)).toBe(true);
    },
  );
});

describe("a hostile repository", () => {
  it("cannot name a file that is written outside its folder", async () => {
    const files = Object.fromEntries(HOSTILE.map((name) => [name, content(10)]));
    const hub = await fixtureHub({ repos: { [REPO]: { files } } });
    const outer = await temporaryFolder();
    const { store } = storeAt(path.join(outer, "deep", "cache"), hub);

    expect(await failureOf(pull(store))).toMatchObject({ code: "no_gguf_in_repo" });
    expect(hub.downloads).toEqual([]);
    expect(await readdir(outer)).toEqual([]);
  });

  it("does not affect a valid file", async () => {
    const files = { "../x.gguf": content(10), "tiny-Q4_K_M.gguf": content(10) };
    const hub = await fixtureHub({ repos: { [REPO]: { files } } });
    const { store } = storeAt(await temporaryFolder(), hub);

    expect((await pull(store)).file).toBe("tiny-Q4_K_M.gguf");
  });

  it.each([
    "../../../../x",
    "",
    "ABC",
    "f".repeat(63),
    "F".repeat(64),
    "g".repeat(64),
    `${"f".repeat(64)}\n`,
  ])("cannot name a blob %j", async (claimedSha256) => {
    const files = { "tiny-Q4_K_M.gguf": { content: content(10), claimedSha256 } };
    const hub = await fixtureHub({ repos: { [REPO]: { files } } });
    const outer = await temporaryFolder();
    const { store } = storeAt(path.join(outer, "cache"), hub);

    expect(await failureOf(pull(store))).toMatchObject({ code: "no_gguf_in_repo" });
    expect(await readdir(outer)).toEqual([]);
  });

  it("cannot name a commit that is a path", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: { "a.gguf": "a" }, commit: "../../../x" } } });
    const outer = await temporaryFolder();
    const { store } = storeAt(path.join(outer, "cache"), hub);

    expect(await failureOf(pull(store))).toMatchObject({ code: "hub_answer_invalid" });
    expect(await readdir(outer)).toEqual([]);
  });

  it("cannot announce another size than it sends", async () => {
    const files = { "tiny-Q4_K_M.gguf": { content: content(1000), claimedSize: 10 } };
    const hub = await fixtureHub({ repos: { [REPO]: { files } } });
    const { store } = storeAt(await temporaryFolder(), hub);

    expect(await failureOf(pull(store))).toMatchObject({ code: "hub_answer_invalid" });
    expect(await store.list()).toEqual([]);
  });
});

describe("a link in the cache", () => {
  const bytes = content(5000);
  const hubOf = () => fixtureHub({ repos: { [REPO]: { files: { "tiny-Q4_K_M.gguf": bytes } } } });

  it.each([...(FILES_HAVE_LINKS ? [["symbolic", symlink] as const] : []), ["hard", link] as const])(
    "(%s) in place of an unfinished download is not written through",
    async (_kind, makeLink) => {
      const hub = await hubOf();
      const outer = await temporaryFolder();
      const precious = path.join(outer, "precious");
      await writeFile(precious, "do not touch");
      const blobs = path.join(outer, "cache", "models--ada--tiny-GGUF", "blobs");
      await mkdir(blobs, { recursive: true });
      await makeLink(precious, path.join(blobs, `${sha256(bytes)}.incomplete`));

      const model = await pull(storeAt(path.join(outer, "cache"), hub).store);

      expect(await readFile(precious, "utf8")).toBe("do not touch");
      expect(sha256(await readFile(model.files[0]!))).toBe(sha256(bytes));
    },
  );

  it
    .skipIf(!FOLDERS_HAVE_LINKS)
    .each([
      "models--ada--tiny-GGUF",
      "models--ada--tiny-GGUF/blobs",
      "models--ada--tiny-GGUF/snapshots",
      ".locks",
    ])("that leads %s out of the cache fails the pull", async (folder) => {
    const hub = await hubOf();
    const outer = await temporaryFolder();
    await mkdir(path.join(outer, "elsewhere"));
    const target = path.join(outer, "cache", folder);
    await mkdir(path.dirname(target), { recursive: true });
    await linkFolder(path.join(outer, "elsewhere"), target);
    const { store } = storeAt(path.join(outer, "cache"), hub);

    expect(await failureOf(pull(store))).toMatchObject({ code: "path_not_allowed" });
    expect(await readdir(path.join(outer, "elsewhere"))).toEqual([]);
  });

  it.skipIf(!FILES_HAVE_LINKS)("that leads out of the cache is neither found nor listed", async () => {
    const hub = await hubOf();
    const outer = await temporaryFolder();
    await writeFile(path.join(outer, "secret.gguf"), "secret");
    const { store } = storeAt(path.join(outer, "cache"), hub);
    const model = await pull(store);
    await symlink(path.join(outer, "secret.gguf"), path.join(path.dirname(model.files[0]!), "secret.gguf"));

    expect((await store.list()).map(({ file }) => file)).toEqual(["tiny-Q4_K_M.gguf"]);
    expect(await store.find({ ...SPEC, file: "secret.gguf" })).toBeUndefined();
  });
});
