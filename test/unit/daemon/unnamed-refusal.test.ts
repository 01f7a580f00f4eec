import { createServer, type Server } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { listenIpc } from "../../../src/daemon/listen.ts";
import { writeRefusal } from "../../../src/files/file-operations.ts";

/** Error of Node for a system error that it has no name for. */
const UNNAMED = Object.assign(new Error("Unknown system error -117"), { code: "", errno: -117 });

/** Server that cannot listen. */
function refusedServer(): Server {
  const server = createServer();
  server.listen = () => {
    queueMicrotask(() => server.emit("error", UNNAMED));
    return server;
  };
  return server;
}

test("listenIpc reports a system error without a name by its message", async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-refused-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const attempt = listenIpc(refusedServer(), path.join(folder, "d.sock"), "linux");
  await expect(attempt).rejects.toThrow(
    /: the system refuses it \(Unknown system error -117\)\. Name another/,
  );
});

test("writeRefusal reports a system error without a name by its message", () => {
  expect(writeRefusal(UNNAMED)).toBe("the system refuses it (Unknown system error -117)");
});
