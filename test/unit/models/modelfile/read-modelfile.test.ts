import { readdirSync, readFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { readAliases } from "../../../../src/models/names/alias-table.ts";
import { MAX_MODELFILE_LENGTH } from "../../../../src/models/modelfile/parse-instructions.ts";
import { modelfileNotes } from "../../../../src/models/modelfile/parameters.ts";
import { readModelfile } from "../../../../src/models/modelfile/read-modelfile.ts";

const FOLDER = path.resolve("/models/own");
const read = (text: string) => readModelfile(text, FOLDER);
const errorOf = (text: string) => {
  try {
    read(text);
  } catch (error) {
    return error;
  }
  return undefined;
};

describe("a Modelfile", () => {
  it("with every directive yields all of their values", () => {
    const definition = read(`
# A model of my own
FROM hf:owner/repo:Q4_K_M@main
DIGEST sha256:${"AB".repeat(32)}
ADAPTER ./style.gguf
ADAPTER "/other folder/tone.gguf" 0.5 AS polite
ADAPTER ./Plain.GGUF as p.2
VISION_PROJECTOR ../eyes.gguf
DRAFT small.gguf
PARAMETER draft_max 8
GPU_LAYERS -1
FLASH_ATTENTION Auto
PARAMETER temperature 0.2
PARAMETER top_p .9
PARAMETER top_k 20
PARAMETER num_ctx 8192
PARAMETER num_predict 256
PARAMETER repetition_guard true
PARAMETER repeat_penalty 1.1
PARAMETER repeat_last_n -1
PARAMETER min_p 5e-2
PARAMETER seed 7
PARAMETER cache_type_v Q8_0
PARAMETER rope_scaling yarn
PARAMETER rope_freq_scale 0.25
PARAMETER num_batch 256
PARAMETER context_shift true
PARAMETER num_keep -1
PARAMETER pooling last
PARAMETER stop <|end|>
PARAMETER stop "\\n\\n"
SYSTEM """
You are kind.
"""
TEMPLATE {% for message in messages %}{{ message.content }}{% endfor %}
THINKING start <reason>
THINKING end </reason>
THINKING enabled false
TOOLFORMAT style mine
TOOLFORMAT call_start "[call]"
TOOLFORMAT call_end "[/call]"
TOOLFORMAT result_start "[result]"
TOOLFORMAT result_end "[/result]"
CAPABILITY tools true
CAPABILITY vision false
AUTHOR Ada Lovelace
MESSAGE user Is Toronto in Canada?
MESSAGE assistant """Yes.
It is."""
MESSAGE user Is Oslo?
RENDERER qwen3-coder
PARSER qwen3-coder
REQUIRES 0.14.0
PARAMETER num_thread 512
LICENSE MIT
LICENSE """Apache
2.0"""
`);
    expect(definition).toEqual({
      from: "hf:owner/repo:Q4_K_M@main",
      digest: "ab".repeat(32),
      adapters: [
        { path: path.join(FOLDER, "style.gguf"), scale: 1 },
        { path: path.resolve("/other folder/tone.gguf"), scale: 0.5, name: "polite" },
        { path: path.join(FOLDER, "Plain.GGUF"), scale: 1, name: "p.2" },
      ],
      projector: path.resolve("/models/eyes.gguf"),
      draft: path.join(FOLDER, "small.gguf"),
      license: "MIT\n\nApache\n2.0",
      author: "Ada Lovelace",
      unused: [
        { directive: "RENDERER", key: "", text: "qwen3-coder" },
        { directive: "PARSER", key: "", text: "qwen3-coder" },
        { directive: "REQUIRES", key: "", text: "0.14.0" },
        { directive: "PARAMETER", key: "num_thread", text: "512" },
      ],
      settings: {
        system: "\nYou are kind.\n",
        template: "{% for message in messages %}{{ message.content }}{% endfor %}",
        sampling: {
          temperature: 0.2,
          topP: 0.9,
          topK: 20,
          repeatPenalty: 1.1,
          repeatLastN: -1,
          minP: 0.05,
          seed: 7,
          guessTokens: 8,
        },
        maxTokens: 256,
        repetitionGuard: true,
        stop: ["<|end|>", "\n\n"],
        contextSize: 8192,
        gpuLayers: -1,
        load: {
          flashAttention: "auto",
          cacheTypeV: "q8_0",
          ropeScaling: "yarn",
          ropeFreqScale: 0.25,
          batchSize: 256,
          contextShift: true,
          numKeep: -1,
          pooling: "last",
        },
        thinking: { start: "<reason>", end: "</reason>", enabled: false },
        toolFormat: {
          style: "mine",
          callStart: "[call]",
          callEnd: "[/call]",
          resultStart: "[result]",
          resultEnd: "[/result]",
        },
        capabilities: { tools: true, vision: false },
        messages: [
          { role: "user", content: "Is Toronto in Canada?" },
          { role: "assistant", content: "Yes.\nIt is." },
          { role: "user", content: "Is Oslo?" },
        ],
      },
    });
  });

  it("needs only FROM, and takes the rest from its base", () => {
    expect(read("from llama3.2:1b")).toEqual({
      from: "llama3.2:1b",
      adapters: [],
      settings: { sampling: {}, stop: [], load: {}, capabilities: {} },
      unused: [],
    });
  });

  it("may have directives in any case, comments, a byte order mark and Windows line ends", () => {
    const definition = read('\uFEFF# comment\r\nfrom a\r\n  \r\nSyStEm """one\r\ntwo"""\r\n');
    expect(definition.settings.system).toBe("one\ntwo");
  });

  it.each([
    ["SYSTEM plain text # no comment", "plain text # no comment"],
    ['SYSTEM say "hi"', 'say "hi"'],
    ['SYSTEM "quoted"', "quoted"],
    [String.raw`SYSTEM "a \"b\" \\ \n \t \d"`, 'a "b" \\ \n \t \\d'],
    ['SYSTEM ""', ""],
    ['SYSTEM """a "" b"""', 'a "" b'],
    ['SYSTEM """"""', ""],
    [
      'SYSTEM  """  one\n# not a comment\n\nFROM nothing\n  two """  ',
      "  one\n# not a comment\n\nFROM nothing\n  two ",
    ],
    ['SYSTEM "one\n\n# no comment\n two \\d"', "one\n\n# no comment\n two \\d"],
    ['SYSTEM " one \nFROM b "  ', " one \nFROM b "],
  ])("reads the text of %j", (line, text) => {
    expect(read(`FROM a\n${line}`).settings.system).toBe(text);
  });

  it("uses the default thinking tags unless it sets its own", () => {
    expect(read("FROM a\nTHINKING enabled true").settings.thinking).toEqual({
      start: "<think>",
      end: "</think>",
      enabled: true,
    });
  });

  it("uses the markers of a known tool format, and may override them", () => {
    const { toolFormat } = read("FROM a\nTOOLFORMAT style Hermes\nTOOLFORMAT result_start <result>").settings;
    expect(toolFormat).toEqual({
      style: "hermes",
      callStart: "<tool_call>",
      callEnd: "</tool_call>",
      resultStart: "<result>",
      resultEnd: "</tool_response>",
    });
  });
});

describe("directives of Ollama without an effect", () => {
  it("are listed in sentences, each once", () => {
    const modelfile = [
      "FROM a",
      "RENDERER qwen3-coder",
      'REQUIRES "0.14.0"',
      "PARAMETER num_thread 512",
      "PARAMETER num_thread 1024",
      "PARAMETER temperature 1",
      "PARAMETER __proto__ 1",
      "PARAMETER num_gpu 3",
    ].join("\n");
    expect(modelfileNotes(modelfile)).toEqual([
      "RENDERER qwen3-coder has no effect: it names code of Ollama; here the chat template writes prompts.",
      "REQUIRES 0.14.0 has no effect: it is a version of Ollama.",
      "PARAMETER num_thread has no effect here; engine.threads of the configuration says how many threads an engine has.",
      "PARAMETER __proto__ is not known here and has no effect.",
      "PARAMETER num_gpu has no effect here; GPU_LAYERS says how many layers are on the GPU.",
    ]);
  });

  it("are listed up to a maximum", () => {
    const many = Array.from({ length: 1000 }, (_, index) => `PARAMETER p${index} 1`).join("\n");
    expect(modelfileNotes(`FROM a\n${many}`)).toHaveLength(21);
    expect(modelfileNotes(`FROM a\nRENDERER ${"x".repeat(5000)}`)[0]?.length).toBeLessThan(200);
  });

  it("do not include numbers that mean the default", () => {
    const { sampling, maxTokens } = read("FROM a\nPARAMETER num_predict -1\nPARAMETER seed -1").settings;
    expect({ sampling, maxTokens }).toEqual({ sampling: {}, maxTokens: undefined });
  });
});

describe("the example Modelfiles", () => {
  const folder = new URL("../../../../configs/modelfiles/", import.meta.url);
  const aliases = readAliases();

  it.each(readdirSync(folder))("%s is valid, and its base is an alias or a file", (name) => {
    const { from } = read(readFileSync(new URL(name, folder), "utf8"));
    expect(aliases.has(from) || from.endsWith(".gguf")).toBe(true);
  });
});

describe("FROM", () => {
  it.each(["llama3.2:1b", "llama3.2:1b-q8", "mine", "qwen3:0.6b@main", "hf:o/r", "hf:o/r:f.gguf@v1"])(
    "keeps %s unchanged",
    (from) => {
      expect(read(`FROM ${from}`).from).toBe(from);
    },
  );

  it.each([
    ["./a.gguf", path.join(FOLDER, "a.gguf")],
    ["a b.gguf", path.join(FOLDER, "a b.gguf")],
    ['"a b.gguf"', path.join(FOLDER, "a b.gguf")],
    ["../up/a.gguf", path.resolve("/models/up/a.gguf")],
    ["/else/../where/a.gguf", path.resolve("/where/a.gguf")],
    ["~/a.gguf", path.join(os.homedir(), "a.gguf")],
    [`/blobs/sha256-${"0a".repeat(32)}`, path.resolve(`/blobs/sha256-${"0a".repeat(32)}`)],
  ])("makes %s absolute", (from, absolute) => {
    expect(read(`FROM ${from}`).from).toBe(absolute);
  });

  it("accepts only absolute paths if the Modelfile has no folder", () => {
    const absolute = path.resolve("/a.gguf");
    expect(readModelfile(`FROM ${absolute}`, undefined).from).toBe(absolute);
    expect(() => readModelfile("\nFROM ./a.gguf", undefined)).toThrow(/line 2: "\.\/a\.gguf" is relative/);
  });
});

describe("an error in a Modelfile", () => {
  it.each([
    ["", 1, /needs FROM/],
    ["# nothing\nSYSTEM hi", 1, /needs FROM/],
    ["FROM", 1, /FROM needs a value/],
    ["FROM a\nFROM b", 2, /FROM is already set in line 1/],
    ["FROM a\n\nhello", 3, /"hello" is not a directive\. The directives are FROM, PARAMETER, .*MESSAGE/],
    ["FROM a\nMESSAGE tool hi", 2, /MESSAGE needs a role, one of system, user, assistant/],
    ["FROM a\nMESSAGE user", 2, /needs a name and a value/],
    ["FROM a\nconstructor x", 2, /is not a directive/],
    ["FROM a b", 1, /is not the name of a model/],
    ["FROM ../x", 1, /must end in \.gguf/],
    ["FROM hf:a/../../b", 1, /hub spec/],
    ["FROM hf:o/r@../x", 1, /branch, tag or commit/],
    ["FROM https://host/a.gguf", 1, /not a URL/],
    ["FROM file:///a.gguf", 1, /not a URL/],
    ["FROM //host/share/a.gguf", 1, /network paths/],
    ["FROM a\nADAPTER http://host/a.gguf", 2, /ADAPTER takes a path on this machine/],
    ["FROM a\nADAPTER a.bin", 2, /must end in \.gguf/],
    ["FROM a\nADAPTER a.gguf 11", 2, /scale of an adapter/],
    ["FROM a\nADAPTER a.gguf big", 2, /scale of an adapter/],
    ["FROM a\nADAPTER a.gguf AS a:b", 2, /name of an adapter must consist of letters/],
    ["FROM a\nADAPTER a.gguf AS x\nADAPTER b.gguf AS x", 1, /two adapters have the same name/],
    ["FROM a\nVISION_PROJECTOR ./%2e%2e/x.gguf", 2, /percent encoding/],
    ["FROM a\nDIGEST sha256:abc", 2, /64 hexadecimal digits/],
    ["FROM a\nDIGEST md5:abc", 2, /sha256/],
    ["FROM a\nGPU_LAYERS -2", 2, /number of layers/],
    ["FROM a\nGPU_LAYERS many", 2, /number of layers/],
    ["FROM a\nFLASH_ATTENTION on", 2, /auto, true or false/],
    ["FROM a\nPARAMETER temperature", 2, /needs a name and a value/],
    ["FROM a\nPARAMETER temperature hot", 2, /"hot" is not a number/],
    ["FROM a\nPARAMETER temperature 0.7 # warm", 2, /comments need their own line/],
    ["FROM a\nPARAMETER temperature -1", 2, /PARAMETER temperature: it must be at least 0, got -1/],
    ["FROM a\nPARAMETER temperature 1e400", 2, /PARAMETER temperature/],
    ["FROM a\nPARAMETER temperature 0x10", 2, /not a number/],
    ["FROM a\nPARAMETER repeat_penalty 0", 2, /must be more than 0, got 0/],
    ["FROM a\nPARAMETER top_p 1.5", 2, /must be at most 1, got 1.5/],
    ["FROM a\nPARAMETER top_k 1.5", 2, /must be a whole number, got 1.5/],
    ["FROM a\nPARAMETER num_ctx 8", 2, /must be at least 16/],
    ["FROM a\nPARAMETER cache_type_k f8", 2, /PARAMETER cache_type_k: it must be .*"q8_0".*, got "f8"/],
    ["FROM a\nPARAMETER rope_freq_scale 0", 2, /must be at least 0\.001, got 0/],
    ["FROM a\nPARAMETER rope_freq_base big", 2, /must be a number, got "big"/],
    ["FROM a\nPARAMETER num_batch 9000", 2, /must be at most 8192/],
    ["FROM a\nPARAMETER context_shift maybe", 2, /must be true or false, got "maybe"/],
    ["FROM a\nPARAMETER num_predict 1.5", 2, /whole number/],
    ["FROM a\nPARAMETER repetition_guard 2", 2, /"2" is neither true nor false/],
    ["FROM a\nPARAMETER seed 4294967296", 2, /PARAMETER seed/],
    ['FROM a\nPARAMETER stop ""', 2, /must not be empty/],
    ["FROM a\nPARAMETER top_k 1\nPARAMETER TOP_K 2", 3, /PARAMETER top_k is already set in line 2/],
    ['FROM "a.gguf', 1, /quote is not closed/],
    ['FROM a\nADAPTER "a.gguf 1', 2, /quote is not closed/],
    ['FROM a\nSYSTEM "open', 2, /begins with a quote/],
    ['FROM a\nSYSTEM "one" two', 2, /begins with a quote/],
    ['FROM a\nSYSTEM "one\nPARAMETER stop "x"', 2, /begins with a quote/],
    ['FROM a\nSYSTEM """one\ntwo', 2, /never ends/],
    ['FROM a\nSYSTEM """one\ntwo""" three', 3, /text behind the closing/],
    ["FROM a\nSYSTEM x\0y", 2, /NUL/],
    ["FROM a\nTHINKING start <t>", 2, /both start and end/],
    ["FROM a\nTHINKING begin <t>", 2, /THINKING does not know "begin"; it knows start, end, enabled/],
    ["FROM a\nTHINKING enabled yes", 2, /true or false/],
    ['FROM a\nTHINKING start ""\nTHINKING end x', 2, /must not be empty/],
    ["FROM a\nTOOLFORMAT call_start [", 2, /needs call_start, call_end/],
    ["FROM a\nTOOLFORMAT style unheard-of", 2, /or a style of hermes, qwen, mistral/],
    ["FROM a\nCAPABILITY flight true", 2, /CAPABILITY does not know "flight"; it knows json/],
    ["FROM a\nCAPABILITY tools maybe", 2, /true or false/],
    ["FROM a\nTEMPLATE hello", 2, /neither \{\{ \.Prompt \}\} nor/],
    ['FROM a\nTEMPLATE """{{ .Prompt }}\n\n{{ .Mood }}"""', 4, /\.Mood is not known here.*Jinja/],
  ])("%j is reported in line %i", (text, line, message) => {
    expect(errorOf(text)).toMatchObject({
      code: "invalid_modelfile",
      status: 400,
      message: expect.stringMatching(new RegExp(`^Modelfile, line ${line}: `)),
    });
    expect(errorOf(text)).toMatchObject({ message: expect.stringMatching(message) });
  });

  it("reports an unclosed text", () => {
    expect(errorOf(`FROM a\nSYSTEM ${"x".repeat(MAX_MODELFILE_LENGTH)}`)).toMatchObject({
      message: expect.stringContaining("longer than"),
    });
  });

  it("quotes only a part of a long line", () => {
    expect(String(errorOf(`FROM a\n${"x".repeat(10_000)} y`)).length).toBeLessThan(400);
    expect(String(errorOf(`FROM ${"x".repeat(10_000)}/y`)).length).toBeLessThan(400);
  });

  it("reports the sixty-fifth stop sequence and the seventeenth adapter", () => {
    expect(errorOf(`FROM a\n${"PARAMETER stop x\n".repeat(65)}`)).toMatchObject({
      message: expect.stringContaining("line 66"),
    });
    expect(errorOf(`FROM a\n${"ADAPTER a.gguf\n".repeat(17)}`)).toMatchObject({ code: "invalid_modelfile" });
  });

  it("reports too many messages", () => {
    expect(errorOf(`FROM a\n${"MESSAGE user x\n".repeat(257)}`)).toMatchObject({
      message: expect.stringContaining("line 258"),
    });
  });
});
