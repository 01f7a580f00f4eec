import { describe, expect, it } from "vitest";
import { chooseModelFiles, chooseProjector, groupModels } from "../../../../src/models/names/hub-spec.ts";

const shards = (prefix: string, count: number): string[] =>
  Array.from(
    { length: count },
    (_, at) => `${prefix}-${String(at + 1).padStart(5, "0")}-of-${String(count).padStart(5, "0")}.gguf`,
  );

const chooseQuant = (paths: readonly string[], quant?: string): string[] | undefined =>
  chooseModelFiles(paths, { quant });

describe("groupModels()", () => {
  it("returns GGUF files, simpler paths first", () => {
    expect(groupModels(["README.md", "sub/a-Q8_0.gguf", "b-Q4_K_M.gguf", "a.gguf", "config.json"])).toEqual([
      ["a.gguf"],
      ["b-Q4_K_M.gguf"],
      ["sub/a-Q8_0.gguf"],
    ]);
  });

  it("returns all shards in order", () => {
    const files = shards("Q8_0/big-Q8_0", 3);
    expect(groupModels(files.toReversed())).toEqual([files]);
  });

  it("leaves out a model with a missing shard, whatever number of shards its name claims", () => {
    expect(groupModels(shards("big", 3).slice(0, 2))).toEqual([]);
    expect(groupModels(["big-00001-of-99999.gguf"])).toEqual([]);
  });

  it("takes a shard number beyond the count for a part of the name", () => {
    expect(groupModels(["odd-00005-of-00003.gguf"])).toEqual([["odd-00005-of-00003.gguf"]]);
  });

  it("leaves out files that only accompany a model", () => {
    const companions = [
      "mmproj-F16.gguf",
      "llava-phi-3-mini-mmproj-f16.gguf",
      "imatrix_unsloth.gguf",
      "ggml-vocab-llama.gguf",
      "mtp-gemma-4-26B-A4B-it.gguf",
      "MTP/gemma-4-26B-A4B-it-Q8_0-MTP.gguf",
      "Step3.7-flash-mtp-BF16.gguf",
      "eagle3-Llama-3.3-70B-BF16.gguf",
    ];
    expect(groupModels(companions)).toEqual([]);
  });

  it("includes models whose names resemble those of accompanying files", () => {
    const models = ["Qwen3.5-MTP-Q4_K_M.gguf", "flashmtpish-Q4_K_M.gguf"];
    expect(groupModels(models)).toHaveLength(models.length);
  });
});

describe("choosing a model without a quantization", () => {
  const llama = ["F16", "IQ3_M", "Q2_K", "Q4_0", "Q4_K_M", "Q5_K_M", "Q8_0"].map(
    (quant) => `llama-${quant}.gguf`,
  );

  it.each([
    [llama, "llama-Q4_K_M.gguf"],
    [llama.filter((path) => !path.includes("Q4_K_M")), "llama-Q5_K_M.gguf"],
    [["llama-F16.gguf", "llama-Q8_0.gguf"], "llama-Q8_0.gguf"],
    [["llama-Q2_K.gguf", "llama-F16.gguf"], "llama-F16.gguf"],
    [["x-UD-IQ1_S.gguf", "x-UD-Q4_K_XL.gguf"], "x-UD-Q4_K_XL.gguf"],
    [["gpt-oss-20b-mxfp4.gguf"], "gpt-oss-20b-mxfp4.gguf"],
    [["weights.gguf"], "weights.gguf"],
  ])("chooses the best known compromise of %j", (paths, chosen) => {
    expect(chooseQuant(paths)).toEqual([chosen]);
  });

  it("finds nothing in a repository without GGUF files", () => {
    expect(chooseQuant(["model.safetensors", "mmproj-F16.gguf"])).toBeUndefined();
  });
});

describe("choosing a model by quantization", () => {
  it.each([
    ["Q8_0", ["a-Q4_K_M.gguf", "a-Q8_0.gguf"], "a-Q8_0.gguf"],
    ["q4_k_m", ["a-q4_k_m.gguf", "a-q4_k_s.gguf"], "a-q4_k_m.gguf"],
    ["Q4_K", ["ggml-model-q4_k.gguf", "ggml-model-q5_k.gguf"], "ggml-model-q4_k.gguf"],
    ["Q4_K_M", ["Yi-6B-chat.Q4_K_M.gguf", "Yi-6B-chat.Q4_K_S.gguf"], "Yi-6B-chat.Q4_K_M.gguf"],
    ["F16", ["a-fp16.gguf", "a-bf16.gguf"], "a-fp16.gguf"],
    ["Q4_K_XL", ["a-Q4_K_M.gguf", "a-UD-Q4_K_XL.gguf"], "a-UD-Q4_K_XL.gguf"],
    ["Q8_0", ["Q4_K_M/model.gguf", "Q8_0/model.gguf"], "Q8_0/model.gguf"],
  ])("%s of %j is %s", (quant, paths, chosen) => {
    expect(chooseQuant(paths, quant)).toEqual([chosen]);
  });

  it.each([
    ["Q8", ["a-Q4_K_M.gguf", "a-Q8_0.gguf"], "a-Q8_0.gguf"],
    ["q4", ["a-Q4_0.gguf", "a-Q4_K_S.gguf"], "a-Q4_K_S.gguf"],
    [
      "Q4",
      ["Phi-3-mini-4k-instruct-fp16.gguf", "Phi-3-mini-4k-instruct-q4.gguf"],
      "Phi-3-mini-4k-instruct-q4.gguf",
    ],
    ["Q3", ["a-Q2_K.gguf", "a-UD-IQ3_XXS.gguf"], "a-UD-IQ3_XXS.gguf"],
  ])("the short name %s of %j is %s", (quant, paths, chosen) => {
    expect(chooseQuant(paths, quant)).toEqual([chosen]);
  });

  it("never chooses another quantization than the requested one", () => {
    expect(chooseQuant(["a-Q4_K_M.gguf"], "Q8_0")).toBeUndefined();
    expect(chooseQuant(["a-Q4_K_M.gguf"], "Q4_K")).toBeUndefined();
    expect(chooseQuant(["Qwen3-8B.gguf"], "Q3")).toBeUndefined();
  });

  it("returns all shards", () => {
    const files = shards("qwen2.5-7b-instruct-q4_k_m", 2);
    expect(chooseQuant(["qwen2.5-7b-instruct-q2_k.gguf", ...files], "Q4_K_M")).toEqual(files);
  });
});

describe("choosing a model by file", () => {
  const files = [...shards("Q8_0/big-Q8_0", 2), "small-Q8_0.gguf", "mmproj-F16.gguf"];

  it("accepts the path or name of any shard", () => {
    const big = shards("Q8_0/big-Q8_0", 2);
    expect(chooseModelFiles(files, { file: big[0] })).toEqual(big);
    expect(chooseModelFiles(files, { file: "big-Q8_0-00002-of-00002.gguf" })).toEqual(big);
    expect(chooseModelFiles(files, { file: "small-Q8_0.gguf" })).toEqual(["small-Q8_0.gguf"]);
  });

  it("finds neither missing files nor files that are no models", () => {
    expect(chooseModelFiles(files, { file: "other.gguf" })).toBeUndefined();
    expect(chooseModelFiles(files, { file: "mmproj-F16.gguf" })).toBeUndefined();
  });
});

describe("choosing a projector", () => {
  it("chooses the only one, whatever its name", () => {
    expect(chooseProjector(["ggml-model-q4_k.gguf", "mmproj-model-f16.gguf"], "ggml-model-q4_k.gguf")).toBe(
      "mmproj-model-f16.gguf",
    );
    expect(
      chooseProjector(
        ["moondream2-text-model-f16.gguf", "moondream2-mmproj-f16.gguf"],
        "moondream2-text-model-f16.gguf",
      ),
    ).toBe("moondream2-mmproj-f16.gguf");
  });

  it("prefers the smaller of equally good ones", () => {
    const paths = ["SmolVLM-Q8_0.gguf", "mmproj-SmolVLM-f16.gguf", "mmproj-SmolVLM-Q8_0.gguf"];
    expect(chooseProjector(paths, "SmolVLM-Q8_0.gguf")).toBe("mmproj-SmolVLM-Q8_0.gguf");
  });

  it("prefers the model's folder and name if a repository has several", () => {
    const paths = ["a/m-Q4_0.gguf", "a/mmproj-m-F16.gguf", "b/n-Q4_0.gguf", "b/mmproj-n-F16.gguf"];
    expect(chooseProjector(paths, "a/m-Q4_0.gguf")).toBe("a/mmproj-m-F16.gguf");
    expect(chooseProjector(paths, "b/n-Q4_0.gguf")).toBe("b/mmproj-n-F16.gguf");
  });

  it("finds none for a text model beside another model's projector", () => {
    const paths = ["text-Q4_0.gguf", "seeing-Q4_0.gguf", "mmproj-seeing-F16.gguf"];
    expect(chooseProjector(paths, "text-Q4_0.gguf")).toBeUndefined();
    expect(chooseProjector(["text-Q4_0.gguf"], "text-Q4_0.gguf")).toBeUndefined();
  });
});
