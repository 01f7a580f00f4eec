import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { tinyBert } from "../../support/tiny-models.ts";
import { type FixtureOptions, startModels } from "./service-fixture.ts";

const MINI = "daybreak-mini";
const MIB = 1024 ** 2;

/** Returns true if the slots of the shipped model share a context when it is loaded with these options. */
async function isShared(options: FixtureOptions = {}, contextSize?: number): Promise<boolean | undefined> {
  const { models, engines } = await startModels(options);
  await models.load({ alias: MINI, contextSize });
  return engines.starts[0]?.spec.sharedContext;
}

describe("separate contexts for slots", () => {
  it("are planned if they are cheap", async () => {
    expect(await isShared()).toBe(false);
  });

  it("are not planned for a single slot, nor for a large KV cache", async () => {
    expect(await isShared({ config: { slots: 1 } })).toBe(true);
    expect(await isShared({}, 2 ** 24)).toBe(true);
  });

  it("are not planned for an encoder, which has no KV cache", async () => {
    const { models, engines, userFile } = await startModels();
    await models.load({ alias: "bert", path: userFile("bert.gguf", tinyBert({ context: 128 })) });
    expect(engines.starts[0]?.spec.sharedContext).toBe(true);
  });

  it("are not used if the model fits into the budget only without them", async () => {
    expect(
      await isShared({ estimateMemory: (_gguf, { sharedContext }) => (sharedContext ? 10 : 101) * MIB }),
    ).toBe(true);
  });

  it("are not used if an engine could not hold them", async () => {
    expect(
      await isShared({
        estimateMemory: (_gguf, { sharedContext }) => {
          if (!sharedContext) throw new ServiceError("insufficient_memory", "The model needs too much.");
          return 10 * MIB;
        },
      }),
    ).toBe(true);
  });

  it("are not used if they would move layers off the GPU, and no warning is logged", async () => {
    const warning = "Only some layers fit.";
    const { models, engines, warnings } = await startModels({
      offloadLayers: async (_gguf, spec) =>
        spec.sharedContext
          ? { spec: { ...spec, gpuLayers: -1 } }
          : { spec: { ...spec, gpuLayers: 2 }, warning },
    });
    await models.load({ alias: MINI });
    expect(engines.starts[0]?.spec).toMatchObject({ sharedContext: true, gpuLayers: -1 });
    expect(warnings).toEqual([]);
  });

  it("count towards the memory that is reserved", async () => {
    const seen: boolean[] = [];
    await isShared({
      estimateMemory: (_gguf, { sharedContext }) => {
        seen.push(sharedContext);
        return 10 * MIB;
      },
    });
    expect(seen.at(-1)).toBe(false);
  });
});
