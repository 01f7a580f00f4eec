import { describe, expect, it } from "vitest";
import { proxySettings } from "../../../../../src/models/hub/remote/proxy-from-env.ts";

const THIS_MACHINE = "localhost,127.0.0.1,::1";

describe("the proxy of an environment", () => {
  it.each([
    [{}, undefined],
    [{ HTTPS_PROXY: "", NO_PROXY: "x" }, undefined],
    [{ HTTPS_PROXY: "http://p:1" }, { HTTPS_PROXY: "http://p:1", NO_PROXY: THIS_MACHINE }],
    [{ http_proxy: "http://p:1" }, { HTTP_PROXY: "http://p:1", NO_PROXY: THIS_MACHINE }],
    [
      { https_proxy: "http://lower:1", HTTPS_PROXY: "http://upper:1" },
      { HTTPS_PROXY: "http://lower:1", NO_PROXY: THIS_MACHINE },
    ],
    [
      { ALL_PROXY: "http://all:1", HTTPS_PROXY: "http://p:1", no_proxy: ".corp" },
      { HTTP_PROXY: "http://all:1", HTTPS_PROXY: "http://p:1", NO_PROXY: `.corp,${THIS_MACHINE}` },
    ],
  ])("of %j is %j", (env, settings) => {
    expect(proxySettings(env)).toEqual(settings);
  });
});
