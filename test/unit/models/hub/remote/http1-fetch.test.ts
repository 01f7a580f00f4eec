import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import type { Server } from "node:net";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { proxySettings } from "../../../../../src/models/hub/remote/http1-fetch.ts";
import { SELF_SIGNED } from "../../../../support/self-signed-certificate.ts";

const MODULE = new URL("../../../../../src/models/hub/remote/http1-fetch.ts", import.meta.url);

async function portOf(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the server has no port");
  return address.port;
}

/** Requests a URL in a process with these environment variables; returns the text of the answer, or the error. */
async function fetched(url: string, env: NodeJS.ProcessEnv): Promise<string> {
  const script = `
    const { http1Fetch } = await import(${JSON.stringify(MODULE)});
    const text = await http1Fetch(${JSON.stringify(url)}).then((answer) => answer.text(), (error) => error.cause?.code);
    console.log(text);
    process.exit();`;
  const args = ["--input-type=module", "--eval", script];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  return stdout.trim();
}

describe("http1Fetch()", () => {
  it("uses HTTP/1.1 with a server that also offers HTTP/2, and trusts NODE_EXTRA_CA_CERTS", async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-ca-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, "ca.pem");
    writeFileSync(file, SELF_SIGNED.cert);
    const server = http2.createSecureServer({ ...SELF_SIGNED, allowHTTP1: true }, (request, response) => {
      response.end(request.httpVersion);
    });
    const port = await portOf(server);
    expect(await fetched(`https://127.0.0.1:${port}/`, { NODE_EXTRA_CA_CERTS: file })).toBe("1.1");
  });

  it("uses the proxy that is set for the protocol, and no other", async () => {
    const requested: string[] = [];
    const proxy = http.createServer((request, response) => {
      requested.push(request.url ?? "");
      response.end("from the proxy");
    });
    proxy.on("connect", (request, tunnel) => {
      requested.push(request.url ?? "");
      tunnel.end("HTTP/1.1 404 Not Found\r\n\r\n");
    });
    const address = `http://127.0.0.1:${await portOf(proxy)}`;
    expect(await fetched("http://hub.invalid/a", { HTTP_PROXY: address })).toBe("from the proxy");
    expect(requested.splice(0)).toEqual(["http://hub.invalid/a"]);
    await fetched("https://hub.invalid/", { HTTP_PROXY: address });
    expect(requested).toEqual([]);
    await fetched("https://hub.invalid/", { HTTPS_PROXY: address });
    expect(requested.splice(0)).toEqual(["hub.invalid:443"]);
  });

  it("uses no proxy for this machine", async () => {
    const port = await portOf(http.createServer((_request, response) => response.end("this machine")));
    const env = { HTTP_PROXY: "http://proxy.invalid" };
    expect(await fetched(`http://127.0.0.1:${port}/`, env)).toBe("this machine");
    // Nothing listens on this port; the error shows which host was contacted.
    expect(await fetched(`http://[::1]:${port}/`, env)).toMatch(/^(ECONNREFUSED|EADDRNOTAVAIL|ENETUNREACH)$/);
  });
});

describe("proxySettings()", () => {
  const noProxy = "localhost,127.0.0.1,[::1]";

  it.each([
    [{}, { noProxy }],
    [{ HTTPS_PROXY: "", NO_PROXY: "x" }, { noProxy: `x,${noProxy}` }],
    [{ HTTPS_PROXY: "http://p:1" }, { https: "http://p:1", noProxy }],
    [{ http_proxy: "http://p:1" }, { http: "http://p:1", noProxy }],
    [
      { https_proxy: "http://lower:1", HTTPS_PROXY: "http://upper:1" },
      { https: "http://lower:1", noProxy },
    ],
    [
      { ALL_PROXY: "http://all:1", HTTPS_PROXY: "http://p:1", no_proxy: ".corp" },
      { http: "http://all:1", https: "http://p:1", noProxy: `.corp,${noProxy}` },
    ],
  ])("of %j are %j", (env, settings) => {
    expect(proxySettings(env)).toEqual(settings);
  });
});
