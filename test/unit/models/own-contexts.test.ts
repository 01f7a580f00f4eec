import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { tinyBert } from "../../support/tiny-models.ts";
import { type FixtureOptions, startModels } from "./service-fixture.ts";

const MINI = "daybreak-mini";
const MIB = 1024 ** 2;

/** Whether the slots of the shipped model share a context when it is loaded so. */
async function isShared(options: FixtureOptions = {}, contextSize?: number): Promise<boolean | undefined> {
  const { models, engines } = await startModels(options);
  await models.load({ alias: MINI, contextSize });
  return engines.starts[0]?.spec.sharedContext;
}

describe("a context for each slot", () => {
  it("is planned where it is cheap", async () => {
    expect(await isShared()).toBe(false);
  });

  it("is not planned for a single slot, nor for a large cache", async () => {
    expect(await isShared({ config: { slots: 1 } })).toBe(true);
    expect(await isShared({}, 2 ** 24)).toBe(true);
  });

  it("is not planned for an encoder, which keeps none", async () => {
    const { models, engines, userFile } = await startModels();
    await models.load({ alias: "bert", path: userFile("bert.gguf", tinyBert({ context: 128 })) });
    expect(engines.starts[0]?.spec.sharedContext).toBe(true);
  });

  it("is given up where the model fits into the budget only without", async () => {
    expect(
      await isShared({ estimateMemory: (_gguf, { sharedContext }) => (sharedContext ? 10 : 101) * MIB }),
    ).toBe(true);
  });

  it("is given up where an engine could not hold it", async () => {
    expect(
      await isShared({
        estimateMemory: (_gguf, { sharedContext }) => {
          if (!sharedContext) throw new ServiceError("insufficient_memory", "The model needs too much.");
          return 10 * MIB;
        },
      }),
    ).toBe(true);
  });

  it("is given up where it would take layers from the GPU, with no word about that", async () => {
    const warning = "Only some layers fit.";
    const { models, engines, warnings } = await startModels({
      placeLayers: async (_gguf, spec) =>
        spec.sharedContext
          ? { spec: { ...spec, gpuLayers: -1 } }
          : { spec: { ...spec, gpuLayers: 2 }, warning },
    });
    await models.load({ alias: MINI });
    expect(engines.starts[0]?.spec).toMatchObject({ sharedContext: true, gpuLayers: -1 });
    expect(warnings).toEqual([]);
  });

  it("is part of the estimate by which room is made", async () => {
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
