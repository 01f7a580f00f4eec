import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { against } from "../against.ts";
import { ndjson, refuse } from "../fake-daemon.ts";

const tiny = {
  alias: "tiny",
  path: "/models/tiny.gguf",
  parameters: 260_000,
  context_size: 512,
  gpu_layers: 0,
  is_default: true,
  active_requests: 0,
  state: "loaded",
  source: "file",
  size_bytes: 1_200_000,
  quantization: "Q8_0",
  modified_at: "2026-01-01T00:00:00.000Z",
  memory_bytes: 70_000_000,
};
const big = {
  ...tiny,
  alias: "hf:owner/big",
  is_default: false,
  state: "available",
  memory_bytes: undefined,
};

describe("list", () => {
  const routes = { "GET /api/models": { models: [tiny, big] } };

  it("prints a table", async () => {
    const { code, stdout } = await against(routes, ["list"]);
    expect(code).toBe(0);
    expect(stdout).toBe(
      [
        "NAME            PARAMETERS  QUANTIZATION  SIZE    CONTEXT  STATE",
        "tiny (default)  260K        Q8_0          1.2 MB  512      loaded",
        "hf:owner/big    260K        Q8_0          1.2 MB  512      available",
        "",
      ].join("\n"),
    );
  });

  it("shows the progress of a download", async () => {
    const toCome = { parameters: 0, context_size: 0, path: "", quantization: "", size_bytes: 2_000_000 };
    const coming = { ...big, ...toCome, state: "downloading", progress: 0.429 };
    const { stdout } = await against({ "GET /api/models": { models: [coming] } }, ["list"]);
    expect(stdout).toMatch(/^hf:owner\/big +- +- +2\.0 MB +- +downloading 42%$/m);
  });

  it("names the machines of a model that this one does not have", async () => {
    const remote = { ...big, source: "fleet", from: "b, c" };
    const { stdout } = await against({ "GET /api/models": { models: [remote] } }, ["list"]);
    expect(stdout).toMatch(/ available on b, c$/m);
  });

  it("has the alias ls and prints only names with --quiet", async () => {
    expect((await against(routes, ["ls", "-q"])).stdout).toBe("tiny\nhf:owner/big\n");
  });

  it("prints the response with --json", async () => {
    const { stdout } = await against(routes, ["list", "--json"]);
    expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify(routes["GET /api/models"])));
  });

  it("explains on standard error how to get a model when there is none", async () => {
    const { code, stdout, stderr } = await against({ "GET /api/models": { models: [] } }, ["list"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    expect(stderr).toContain("daybreak pull");
  });
});

describe("ps", () => {
  it("prints the loaded models", async () => {
    const { stdout } = await against({ "GET /api/models": { models: [tiny, big] } }, ["ps"]);
    expect(stdout).toContain("tiny (default)  70.0 MB  512 tokens  0           0         by hand");
    expect(stdout).not.toContain("hf:owner/big");
  });

  it("prints the loaded models as JSON", async () => {
    const { stdout } = await against({ "GET /api/models": { models: [tiny, big] } }, ["ps", "--json"]);
    expect(JSON.parse(stdout)).toEqual({ models: [tiny] });
  });
});

describe("show", () => {
  const detail = {
    ...big,
    architecture: "llama",
    vocab_size: 512,
    capabilities: { vision: false, tools: true, thinking: false, json: true },
    context_source: "modelfile",
    trained_context_size: 131_072,
    embedding_size: 64,
    block_count: 5,
    purpose: "generate",
    files: ["/models/a.gguf", "/models/b.gguf"],
    adapters: [{ id: 0, name: "rhyme", path: "/models/rhyme.gguf", scale: 0.5 }],
    settings: { temperature: 0.2, num_ctx: 2048, stop: ["<a>", "\n"] },
    load_settings: { flash_attention: "auto", cache_type_k: "q8_0" },
    template: "{% for m in messages %}\n{{ m.content }}\n{% endfor %}",
    license: "MIT",
  };
  const routes = {
    "GET /api/models/hf%3Aowner%2Fbig": detail,
    "GET /api/models/hf%3Aowner%2Fbig/modelfile": { alias: "hf:owner/big", modelfile: "FROM x" },
  };

  it("prints the fields of a model", async () => {
    const { stdout } = await against(routes, ["show", "hf:owner/big"]);
    expect(stdout).toContain("Architecture  llama\n");
    expect(stdout).toMatch(/^Context +\d+ tokens \(num_ctx\)$/m);
    expect(stdout).toContain("Trained for   131072 tokens\n");
    expect(stdout).toContain("Capabilities  tools, json\n");
    expect(stdout).toContain("File          /models/a.gguf\n              /models/b.gguf\n");
    expect(stdout).toContain("Adapters      rhyme: /models/rhyme.gguf (scale 0.5)\n");
    expect(stdout).toContain(
      'Settings      temperature 0.2\n              num_ctx 2048\n              stop "<a>"\n              stop "\\n"\n',
    );
    expect(stdout).toContain('Loaded with   flash_attention "auto"\n              cache_type_k "q8_0"\n');
    expect(stdout).toContain("Template      {% for m in messages %} … (--template prints it)\n");
    expect(stdout).toContain("License       MIT\n");
    expect(stdout).not.toContain("Projector");
  });

  it("names the machines of a model that this one does not have", async () => {
    const remote = { "GET /api/models/x": { ...detail, source: "fleet", from: "b, c" } };
    const { stdout } = await against(remote, ["show", "x"]);
    expect(stdout).toMatch(/^Machines +b, c$/m);
    expect(stdout).not.toContain("Made from");
  });

  it.each([
    ["--template", `${detail.template}\n`],
    ["--license", "MIT\n"],
  ])("prints the full text with %s", async (option, text) => {
    expect((await against(routes, ["show", "hf:owner/big", option])).stdout).toBe(text);
  });

  it("removes control characters from a model's title", async () => {
    const hostile = { "GET /api/models/x": { ...detail, name: "\u001b]0;owned\u0007plain" } };
    expect((await against(hostile, ["show", "x"])).stdout).toContain("]0;ownedplain\n");
  });

  it("prints a Modelfile that ends in a newline", async () => {
    expect((await against(routes, ["show", "hf:owner/big", "--modelfile"])).stdout).toBe("FROM x\n");
  });

  it("exits with 4 for an unknown model", async () => {
    const { code, stderr } = await against(
      { "GET /api/models/nix": refuse(404, "model_not_found", "not_found", "No model nix is known.") },
      ["show", "nix"],
    );
    expect({ code, stderr }).toEqual({ code: 4, stderr: "daybreak: No model nix is known.\n" });
  });
});

describe("load and unload", () => {
  it("sends the options with absolute paths", async () => {
    const loaded = { status: "loaded", alias: "tiny", parameters: 260_000, context_size: 128, gpu_layers: 2 };
    const { stdout, requests } = await against(
      { "POST /api/models/load": loaded },
      "load tiny --path tiny.gguf --context-size 128 --gpu-layers -1 --cache-type-k q8_0 --rope-freq-scale .5 --no-context-shift --default".split(
        " ",
      ),
    );
    expect(stdout).toContain("Loaded tiny: 260K parameters, context of 128 tokens, 2 layers on the GPU.");
    expect(requests).toEqual([
      [
        "POST /api/models/load",
        {
          alias: "tiny",
          path: path.resolve("tiny.gguf"),
          gpu_layers: -1,
          context_size: 128,
          cache_type_k: "q8_0",
          rope_freq_scale: 0.5,
          context_shift: false,
          set_default: true,
        },
      ],
    ]);
  });

  it("lets the daemon choose the context and prints the reason for its size", async () => {
    const { stdout, requests } = await against(
      {
        "POST /api/models/load": {
          status: "loaded",
          alias: "tiny",
          parameters: 260_000,
          context_size: 8192,
          context_source: "memory",
          gpu_layers: 0,
        },
      },
      ["load", "tiny"],
    );
    expect(requests).toEqual([["POST /api/models/load", { alias: "tiny", context_size: 0 }]]);
    expect(stdout).toContain("context of 8192 tokens (limited by memory), 0 layers");
  });

  it("exits with 5 for a model that is already loaded", async () => {
    const routes = { "POST /api/models/load": refuse(409, "model_already_loaded", "conflict") };
    expect((await against(routes, ["load", "tiny"])).code).toBe(5);
  });

  it("exits with 2 without a request for an invalid number", async () => {
    const { code, stderr, requests } = await against({}, ["load", "tiny", "--context-size", "0.5"]);
    expect({ code, requests }).toEqual({ code: 2, requests: [] });
    expect(stderr).toContain("Not a whole number");
  });

  it("unloads several models and stops at the first failure", async () => {
    const { code, stdout } = await against(
      {
        "POST /api/models/a/unload": { status: "unloaded", alias: "a" },
        "POST /api/models/b/unload": refuse(409, "model_already_unloaded", "conflict"),
      },
      ["unload", "a", "b", "c"],
    );
    expect({ code, stdout }).toEqual({ code: 5, stdout: "Unloaded a.\n" });
  });
});

describe("rm and cp", () => {
  it("deletes a model and prints the response with --json", async () => {
    const answer = { status: "deleted", alias: "a", source: "hub" };
    const { stdout } = await against({ "DELETE /api/models/a": answer }, ["rm", "a", "--json"]);
    expect(JSON.parse(stdout)).toEqual(answer);
  });

  it.each([
    ["hub", "Deleted a."],
    ["modelfile", "Deleted a."],
    ["file", "Forgot a. The file is yours and stays."],
    ["shipped", "Forgot a. It ships with Daybreak: its file stays"],
  ])("describes the deletion of a model from %s", async (source, said) => {
    const answer = { status: "deleted", alias: "a", source };
    const { stdout } = await against({ "DELETE /api/models/a": answer }, ["rm", "a"]);
    expect(stdout).toContain(said);
  });

  it("copies a model", async () => {
    const { stdout, requests } = await against(
      { "POST /api/models/copy": { status: "copied", alias: "b" } },
      ["cp", "a", "b"],
    );
    expect(stdout).toBe("Copied a to b.\n");
    expect(requests).toEqual([["POST /api/models/copy", { source: "a", destination: "b" }]]);
  });
});

describe("create", () => {
  it("prints notes on standard error", async () => {
    const note = "PARSER x has no effect.";
    const route = { "POST /api/models/create": { status: "created", alias: "pirate", notes: [note] } };
    const { stdout, stderr } = await against(route, ["create", "pirate", "-f", "-"], {
      stdin: "FROM tiny\n",
    });
    expect(stdout).toBe("Created pirate.\n");
    expect(stderr).toContain(`Note: ${note}\n`);
  });

  const routes = { "POST /api/models/create": { status: "created", alias: "pirate" } };

  it("sends the Modelfile and the base folder of its paths", async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-create-"));
    const file = path.join(folder, "Modelfile");
    writeFileSync(file, "FROM tiny\n");
    const { stdout, requests } = await against(routes, ["create", "pirate", "-f", file]);
    rmSync(folder, { recursive: true });
    expect(stdout).toBe("Created pirate.\n");
    expect(requests).toEqual([
      ["POST /api/models/create", { alias: "pirate", modelfile: "FROM tiny\n", base_folder: folder }],
    ]);
  });

  it("reads the Modelfile from standard input for -", async () => {
    const { requests } = await against(routes, ["create", "pirate", "-f", "-"], { stdin: "FROM tiny\n" });
    expect(requests[0]?.[1]).toMatchObject({ modelfile: "FROM tiny" });
  });

  it("exits with 2 for a missing Modelfile", async () => {
    const { code, stderr } = await against(routes, ["create", "pirate", "-f", "/nonexistent/Modelfile"]);
    expect(code).toBe(2);
    expect(stderr).toContain(
      `There is no file ${path.resolve("/nonexistent/Modelfile")}; name the Modelfile with -f`,
    );
  });
});

describe("pull", () => {
  const lines = [
    { status: "downloading", progress: 0.5, total_bytes: 10, downloaded_bytes: 5 },
    { status: "verifying" },
    { status: "success", model: "tiny" },
  ];
  const routes = { "POST /api/models/pull": ndjson(...lines) };

  it("prints only the result without a terminal", async () => {
    const { code, stdout, stderr, requests } = await against(routes, ["pull", "tiny"]);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "Pulled tiny.\n", stderr: "" });
    expect(requests).toEqual([["POST /api/models/pull", { name: "tiny", stream: true }]]);
  });

  it("prints the daemon's lines with --json", async () => {
    const { stdout } = await against(routes, ["pull", "tiny", "--json"]);
    expect(stdout).toBe(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  });

  it("prints an error as JSON on standard error with --json", async () => {
    const { code, stdout, stderr } = await against(
      { "POST /api/models/pull": refuse(404, "hub_repo_not_found", "not_found", "No such repository.") },
      ["pull", "hf:a/b", "--json"],
    );
    expect({ code, stdout }).toEqual({ code: 4, stdout: "" });
    expect(JSON.parse(stderr)).toEqual({
      error: { message: "No such repository.", code: "hub_repo_not_found" },
    });
  });
});
