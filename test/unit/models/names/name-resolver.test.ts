import { describe, expect, it } from "vitest";
import { NameResolver } from "../../../../src/models/names/name-resolver.ts";
import type { AliasEntry } from "../../../../src/models/names/alias-table.ts";

const llama: AliasEntry = { repo: "bartowski/Llama-GGUF", file: "Llama-1B-Q4_K_M.gguf", tags: ["chat"] };
const seeing: AliasEntry = {
  repo: "o/Seeing",
  file: "s-Q8_0.gguf",
  mmproj: "mmproj-s.gguf",
  tags: ["vision"],
};
const aliases = new Map([
  ["llama3.2:1b", llama],
  ["embed", { repo: "o/Embed", file: "e.gguf", tags: ["embedding"] }],
  ["seeing:2b", seeing],
  ["watching", { repo: "o/Watching", file: "w-Q4_0.gguf", tags: ["vision"] }],
]);
const resolver = new NameResolver(aliases, { platform: "linux", home: "/home/me" });
const windows = new NameResolver(aliases, { platform: "win32", home: "C:\\Users\\me" });

const refused = (name: string) => {
  try {
    resolver.resolve(name);
  } catch (error) {
    return error;
  }
  return undefined;
};

describe("an alias", () => {
  const spec = { owner: "bartowski", repo: "Llama-GGUF", file: "Llama-1B-Q4_K_M.gguf" };

  it("means the file of its entry, and is case-insensitive", () => {
    const meant = { kind: "alias", name: "llama3.2:1b", spec, projector: undefined };
    expect(resolver.resolve("llama3.2:1b")).toEqual(meant);
    expect(resolver.resolve("Llama3.2:1B")).toEqual(meant);
  });

  it("without a tag equals that with the tag latest", () => {
    expect(resolver.resolve("embed:latest")).toEqual(resolver.resolve("embed"));
    expect(resolver.resolve("embed")).toMatchObject({ kind: "alias", name: "embed" });
  });

  it("has the projector of its entry, or else one that is found in the repository", () => {
    expect(resolver.resolve("seeing:2b")).toMatchObject({ projector: "mmproj-s.gguf" });
    expect(resolver.resolve("watching")).toMatchObject({ projector: "auto" });
  });

  it.each([
    ["llama3.2:1b-q8", "Q8"],
    ["llama3.2:1b-q8_0", "Q8_0"],
    ["llama3.2:1b-UD-Q4_K_XL", "UD-Q4_K_XL"],
    ["llama3.2:1b-f16", "F16"],
  ])("with the quantization %s means that quantization instead of the entry's file", (name, quant) => {
    expect(resolver.resolve(name)).toEqual({
      kind: "alias",
      name: `llama3.2:1b-${quant.toLowerCase()}`,
      spec: { owner: "bartowski", repo: "Llama-GGUF", quant },
      projector: undefined,
    });
  });

  it("with the quantization of its entry is the alias itself", () => {
    expect(resolver.resolve("llama3.2:1b-q4_k_m")).toEqual(resolver.resolve("llama3.2:1b"));
  });

  it("with a revision is its hub spec at that revision", () => {
    expect(resolver.resolve("llama3.2:1b@v1.0")).toEqual({
      kind: "spec",
      spec: { ...spec, revision: "v1.0" },
    });
  });
});

describe("a hub spec", () => {
  it.each([
    ["hf:o/r", { owner: "o", repo: "r" }],
    ["hf:o/r:Q4_K_M", { owner: "o", repo: "r", quant: "Q4_K_M" }],
    ["hf:o/r:q8", { owner: "o", repo: "r", quant: "Q8" }],
    ["hf:o/r:f.gguf@main", { owner: "o", repo: "r", file: "f.gguf", revision: "main" }],
    ["hf:o/r:Q8_0/f-00001-of-00002.gguf", { owner: "o", repo: "r", file: "Q8_0/f-00001-of-00002.gguf" }],
    ["hf:o/r@refs/pr/3", { owner: "o", repo: "r", revision: "refs/pr/3" }],
    ["hf:o/r:模型@7B.gguf", { owner: "o", repo: "r", file: "模型@7B.gguf" }],
    [
      "hf:mixedbread-ai/mxbai_v1.5:gguf/x y.gguf",
      { owner: "mixedbread-ai", repo: "mxbai_v1.5", file: "gguf/x y.gguf" },
    ],
  ])("%s is parsed", (name, spec) => {
    expect(resolver.resolve(name)).toEqual({ kind: "spec", spec });
  });

  it.each([
    "hf:",
    "hf:o",
    "hf:o/",
    "hf:a/../../b",
    "hf:../b",
    "hf:a/b/c",
    "hf:a/..",
    "hf:a--b/c",
    "hf:o/NUL",
    "hf:о/r",
    "hf:o/r:",
    "hf:o/r:../../f.gguf",
    "hf:o/r:/f.gguf",
    "hf:o/r:a\\f.gguf",
    "hf:o/r:a%2ff.gguf",
    "hf:o/r:.hidden.gguf",
    "hf:o/r:con.gguf",
    "hf:o/r:f\u202egguf.gguf",
    "hf:o/r:f.bin",
    "hf:o/r:fast",
    "hf:o/r:Q4_K_M:f.gguf",
    "hf:o/r@",
    "hf:o/r@../x",
    "hf:o/r@-x",
    "hf:o/r@a b",
    `hf:o/r:${"d/".repeat(20)}f.gguf`,
  ])("%j is rejected", (name) => {
    expect(refused(name)).toMatchObject({ code: "invalid_model_name" });
  });
});

describe("a path", () => {
  it.each([
    ["/models/a.gguf", "/models/a.gguf"],
    ["./a.gguf", "./a.gguf"],
    ["../models/a.gguf", "../models/a.gguf"],
    ["~/a.gguf", "/home/me/a.gguf"],
    ["a.gguf", "a.gguf"],
    ["folder/été model.GGUF", "folder/été model.GGUF"],
  ])("%s is recognized", (name, path) => {
    expect(resolver.resolve(name)).toEqual({ kind: "path", path });
  });

  it("may have drive letters and backslashes on Windows", () => {
    expect(windows.resolve("C:\\models\\a.gguf")).toEqual({ kind: "path", path: "C:\\models\\a.gguf" });
    expect(windows.resolve("D:/a.gguf")).toEqual({ kind: "path", path: "D:/a.gguf" });
    expect(windows.resolve("~\\a.gguf")).toEqual({ kind: "path", path: "C:\\Users\\me\\a.gguf" });
    expect(windows.resolve(".\\a.gguf")).toEqual({ kind: "path", path: ".\\a.gguf" });
  });

  it.each([
    "C:a.gguf",
    "C:\\a.gguf:stream.gguf",
    "C:\\nul.gguf",
    "\\\\?\\C:\\a.gguf",
    "\\\\host\\share\\a.gguf",
  ])("%s is rejected on Windows", (name) => {
    expect(() => windows.resolve(name)).toThrow(expect.objectContaining({ code: "invalid_model_name" }));
  });

  it.each([
    "../x",
    "..",
    "/etc/passwd",
    "//host/share/a.gguf",
    "\\\\host\\share\\a.gguf",
    "C:\\a.gguf",
    "~root/a.gguf",
    "./..%2fa.gguf",
    "/a%00.gguf",
    "/a\0.gguf",
    "./a\n.gguf",
    "./a\u200b.gguf",
    "./con.gguf",
    ".gguf\ud800.gguf",
  ])("%j is rejected", (name) => {
    expect(refused(name)).toMatchObject({ code: "invalid_model_name" });
  });
});

describe("a plain name", () => {
  it("without an alias may be a model's name", () => {
    expect(resolver.resolve("my-model:v2")).toEqual({ kind: "name", name: "my-model:v2" });
    expect(resolver.resolve("constructor:latest")).toEqual({ kind: "name", name: "constructor" });
  });

  it.each([
    "",
    " ",
    "..%2f",
    "x%00",
    "a/b",
    "a:b:c",
    "a..b",
    "-a",
    ".a",
    "a.",
    "__proto__",
    "con",
    "LPT1:latest",
    "a b",
    "a\n",
    "lla\u200bma",
    "ｌlama",
    "llаma3.2:1b",
    "a\ud800",
    "http://host/a",
    "unknown@main",
    "x".repeat(129),
    "x".repeat(4096),
    `hf:o/${"x".repeat(4096)}`,
    `/${"x".repeat(4096)}.gguf`,
  ])("%j is rejected", (name) => {
    expect(refused(name)).toMatchObject({ code: "invalid_model_name", status: 400 });
  });

  it("that looks like a repository is rejected with the form of a hub spec", () => {
    expect(refused("bartowski/Llama-GGUF")).toMatchObject({
      message: expect.stringContaining("hf:owner/repository"),
    });
  });

  it.each([
    ["con", /Windows/],
    ["LPT1:latest", /Windows/],
    ["_a", /begins with a letter or digit/],
  ])("%s is rejected with the reason", (name, message) => {
    expect(refused(name)).toMatchObject({ message: expect.stringMatching(message) });
  });

  it("is quoted in errors without control characters and shortened", () => {
    expect(refused("a\nb")).toMatchObject({ message: expect.stringContaining(String.raw`"a\nb"`) });
    expect(String(refused("x".repeat(4096))).length).toBeLessThan(300);
  });
});

describe("the alias of a file", () => {
  it("is that of the entry with this file", () => {
    expect(resolver.aliasOf("bartowski/Llama-GGUF", "Llama-1B-Q4_K_M.gguf")).toBe("llama3.2:1b");
  });

  it("has a quantization if only that differs, and resolves to the same file", () => {
    const alias = resolver.aliasOf("bartowski/Llama-GGUF", "Llama-1B-Q8_0.gguf");
    expect(alias).toBe("llama3.2:1b-q8_0");
    expect(resolver.resolve(alias ?? "")).toMatchObject({ spec: { repo: "Llama-GGUF", quant: "Q8_0" } });
  });

  it("is undefined for other files and repositories", () => {
    expect(resolver.aliasOf("bartowski/Llama-GGUF", "Other-Q4_K_M.gguf")).toBeUndefined();
    expect(resolver.aliasOf("other/Llama-GGUF", "Llama-1B-Q4_K_M.gguf")).toBeUndefined();
  });
});
