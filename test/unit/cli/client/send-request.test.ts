import { describe, expect, it } from "vitest";
import { describeEndpoint, localEndpoints, parseEndpoint } from "../../../../src/cli/client/send-request.ts";

describe("localEndpoints", () => {
  it.each([
    [
      "the socket first",
      { socket: "/run/d.sock", http: { addr: "127.0.0.1", port: 8080 } },
      ["ipc:///run/d.sock", "http://127.0.0.1:8080"],
    ],
    [
      "loopback for all addresses",
      { socket: "", http: { addr: "0.0.0.0", port: 1 } },
      ["http://127.0.0.1:1", "http://[::1]:1"],
    ],
    ["loopback for all IPv6 addresses", { socket: "", http: { addr: "::", port: 1 } }, ["http://[::1]:1"]],
    [
      "no TCP when the system chose the port",
      { socket: "/s", http: { addr: "127.0.0.1", port: 0 } },
      ["ipc:///s"],
    ],
  ])("gives %s", (_what, config, endpoints) => {
    expect(localEndpoints(config).map(describeEndpoint)).toEqual(endpoints);
  });
});

describe("parseEndpoint", () => {
  it.each([
    ["http://box:9000", "http://box:9000"],
    ["http://box", "http://box"],
    ["https://box/llm", "https://box/llm"],
    ["box", "http://box:8080"],
    ["box:80", "http://box"],
    ["192.168.1.5:9000", "http://192.168.1.5:9000"],
    ["[::1]", "http://[::1]:8080"],
    ["ipc:///run/d.sock", "ipc:///run/d.sock"],
  ])("understands %s", (text, endpoint) => {
    expect(describeEndpoint(parseEndpoint(text, 8080))).toBe(endpoint);
  });

  it.each(["ftp://box", "", "http://", "a b"])("refuses %j", (text) => {
    expect(() => parseEndpoint(text, 8080)).toThrow(TypeError);
  });
});
