import { expect, test } from "vitest";
import { receiveFile } from "../../../src/batches/batch-service.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";

const away = (): Promise<never> =>
  Promise.reject(new ServiceError("fleet_unreachable", "The server is away."));

const upload = async (): Promise<void> => {
  await using file = await receiveFile([new Uint8Array(3)], {
    store: { storedBytes: async () => 0, addFile: away },
    folder: { write: async () => 3, remove: away },
    newId: () => "file-1",
    limits: { max_file_size: 10, max_total_size: 10, retention: 1000 },
    incoming: { bytes: 0 },
    now: () => 0,
  });
  await file.store({ viewer: undefined, purpose: "batch", name: "" });
};

test("an upload that can be neither stored nor removed fails with the error of storing it", async () => {
  await expect(upload()).rejects.toMatchObject({ code: "fleet_unreachable", status: 503 });
});
