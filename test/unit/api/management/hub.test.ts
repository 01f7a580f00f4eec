import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import type { HubOffer } from "../../../../src/models/hub/hub-catalog.ts";
import { fakeModel, FakeModels } from "../../../support/fake-models.ts";
import { fakeApp } from "../../../support/fake-services.ts";

const OFFER: HubOffer = {
  spec: "hf:ada/tiny:Q8_0",
  file: "tiny-Q8_0.gguf",
  shards: 1,
  quantization: "Q8_0",
  sizeBytes: 1000,
  partialBytes: 0,
  isOnDisk: false,
};

function setup(models = new FakeModels()) {
  const searches: unknown[] = [];
  const app = fakeApp({
    models,
    overrides: {
      hub: {
        url: "http://hub.test",
        search: async (query, limit) => {
          searches.push([query, limit]);
          const repo = { downloads: 7, likes: 1, isGated: true };
          return [
            { ...repo, repo: "ada/tiny", updatedAt: "2026-01-02T03:04:05.000Z", task: "text-generation" },
            { ...repo, repo: "ada/none", updatedAt: undefined, task: undefined },
          ];
        },
        offers: async (repo) => ({
          repo,
          isGated: false,
          task: undefined,
          parameters: 1200,
          trainedContext: 2048,
          offers: [OFFER, { ...OFFER, spec: "fake", isOnDisk: true, quantization: undefined }],
        }),
      },
    },
  });
  const call = async (path: string, body?: object) => {
    const headers = { "content-type": "application/json" };
    const answer = await app.request(path, body && { method: "POST", headers, body: JSON.stringify(body) });
    return { status: answer.status, body: await answer.json() };
  };
  return { call, searches };
}

describe("GET /api/hub/search", () => {
  test("returns repositories, without fields that the hub does not report", async () => {
    const { call, searches } = setup();
    expect(await call("/api/hub/search?query=%20tiny%20&limit=2")).toEqual({
      status: 200,
      body: {
        repos: [
          {
            repo: "ada/tiny",
            downloads: 7,
            likes: 1,
            gated: true,
            updated_at: "2026-01-02T03:04:05.000Z",
            task: "text-generation",
          },
          { repo: "ada/none", downloads: 7, likes: 1, gated: true },
        ],
      },
    });
    await call("/api/hub/search?query=tiny");
    expect(searches).toEqual([
      ["tiny", 2],
      ["tiny", 20],
    ]);
  });

  test.each(["", "?query=", "?query=%20", "?query=a&limit=0", "?query=a&limit=1000", "?query=a&limit=x"])(
    "rejects the query %s",
    async (query) => {
      expect(await setup().call(`/api/hub/search${query}`)).toMatchObject({
        status: 400,
        body: { error: { code: "invalid_parameter" } },
      });
    },
  );
});

describe("GET /api/hub/files", () => {
  test("returns the estimated memory of each model and its alias if it is on disk", async () => {
    const models = new FakeModels();
    const requests: unknown[] = [];
    models.fit = async (sizes) => {
      requests.push(sizes);
      const gpu = { layers: 3, allLayers: 5, bytes: 10.5 };
      return { fits: false, neededBytes: 1500.5, contextSize: 4096, reason: "Too large.", gpu };
    };
    const { status, body } = await setup(models).call("/api/hub/files?repo=ada/tiny");
    const common = {
      file: "tiny-Q8_0.gguf",
      shards: 1,
      size_bytes: 1000,
      partial_bytes: 0,
      fits: false,
      needed_bytes: 1501,
      context_size: 4096,
      reason: "Too large.",
      gpu: { layers: 3, all_layers: 5, bytes: 11 },
    };
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        repo: "ada/tiny",
        gated: false,
        page: "http://hub.test/ada/tiny",
        parameters: 1200,
        trained_context_size: 2048,
        estimate: expect.stringMatching(/^Estimated /),
        models: [
          { ...common, spec: "hf:ada/tiny:Q8_0", quantization: "Q8_0" },
          { ...common, spec: "fake", on_disk: "fake" },
        ],
      },
    });
    expect(requests[0]).toEqual({
      fileBytes: 1000,
      parameters: 1200,
      trainedContext: 2048,
      quantization: "Q8_0",
    });
  });
});

describe("POST /api/hub/discard", () => {
  test("returns the number of freed bytes", async () => {
    expect(await setup().call("/api/hub/discard", { name: "hf:ada/tiny" })).toEqual({
      status: 200,
      body: { status: "discarded", name: "hf:ada/tiny", freed_bytes: 10 },
    });
  });

  test("is rejected while the model is being downloaded", async () => {
    const models = new FakeModels();
    models.discard = async () => Promise.reject(new ServiceError("model_busy", "It is being downloaded."));
    expect(await setup(models).call("/api/hub/discard", { name: "hf:ada/tiny" })).toMatchObject({
      status: 409,
      body: { error: { code: "model_busy" } },
    });
  });
});

describe("POST /api/models/default", () => {
  test("makes a model the default without loading it", async () => {
    const models = new FakeModels([fakeModel(), fakeModel({ alias: "other", state: "available" })]);
    expect(await setup(models).call("/api/models/default", { alias: "other" })).toEqual({
      status: 200,
      body: { status: "default", alias: "other" },
    });
    expect(models.defaultAlias).toBe("other");
  });

  test("rejects an unknown model, and one that does not generate text", async () => {
    const { gguf } = fakeModel();
    const models = new FakeModels([fakeModel({ alias: "vectors", gguf: { ...gguf, purpose: "embed" } })]);
    const { call } = setup(models);
    expect(await call("/api/models/default", { alias: "none" })).toMatchObject({ status: 404 });
    expect(await call("/api/models/default", { alias: "vectors" })).toMatchObject({
      status: 400,
      body: { error: { code: "unsupported_feature" } },
    });
  });
});
