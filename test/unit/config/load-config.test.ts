import { chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError, readDefaultConfig } from "../../../src/config/read-config-file.ts";
import { type ConfigSources, loadConfig, similarOption } from "../../../src/config/load-config.ts";
import { unless } from "../../support/need.ts";

const ROOT = unless(process.getuid?.() === 0, "only root can change the owner of files");

describe("load config", () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-config-"));
  });

  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  function file(text: string): string {
    const name = path.join(folder, "daybreak.toml");
    writeFileSync(name, text);
    return name;
  }

  /** Writes the default configuration file. */
  function defaultFile(text: string): string {
    const name = path.join(folder, "daybreak", "daybreak.toml");
    mkdirSync(path.dirname(name));
    writeFileSync(name, text);
    return name;
  }

  /** Loads a configuration without the real environment and home folder. */
  function load(sources: ConfigSources = {}) {
    return loadConfig({ ...sources, env: { XDG_CONFIG_HOME: folder, ...sources.env }, platform: "linux" });
  }

  function failure(sources: ConfigSources): string {
    try {
      load(sources);
    } catch (error) {
      if (error instanceof ConfigError) return error.message;
      throw error;
    }
    throw new Error("the configuration was accepted");
  }

  describe("precedence", () => {
    test("the defaults match the specification", () => {
      const { config, file: read } = load();
      expect(config.http).toMatchObject({ addr: "0.0.0.0", port: 8080, cors_origins: ["*"], rate_limit: 0 });
      // Automatic; POST /api/models/load has its own default.
      expect(config.models.context_size).toBe(0);
      expect(config.api_keys).toEqual([]);
      expect(read).toBeUndefined();
    });

    test("flags take precedence over the environment, the environment over the file, the file over the defaults", () => {
      const sources = {
        file: file("[http]\nport = 1001\naddr = '127.0.0.1'\nbody_limit = 2048"),
        env: { SERVICE_HTTP_PORT: "1002", SERVICE_HTTP_ADDR: "127.0.0.2" },
        flags: { "http.port": "1003" },
      };
      expect(load(sources).config.http).toMatchObject({
        port: 1003,
        addr: "127.0.0.2",
        body_limit: 2048,
        rate_limit: 0,
      });
    });

    test("--config takes precedence over SERVICE_CONFIG", () => {
      const other = path.join(folder, "other.toml");
      writeFileSync(other, "ui = false");
      const env = { SERVICE_CONFIG: file("[http]\nport = 5") };
      expect(load({ env }).config.http.port).toBe(5);
      const both = load({ env, file: other });
      expect(both.config).toMatchObject({ ui: false, http: { port: 8080 } });
      expect(both.file).toBe(other);
    });

    test("HUB_TOKEN and HUB_URL are accepted", () => {
      const { config } = load({ env: { HUB_TOKEN: "secret", HUB_URL: "http://hub.test" } });
      expect(config).toMatchObject({ hub_token: "secret", hub_url: "http://hub.test" });
    });

    test("an empty variable is ignored, but an empty socket disables IPC", () => {
      const { config } = load({ env: { SERVICE_HTTP_PORT: "", HUB_TOKEN: "", SERVICE_SOCKET: "" } });
      expect(config.http.port).toBe(8080);
      expect(config.hub_token).toBeUndefined();
      expect(config.socket).toBe("");
    });
  });

  describe("values", () => {
    test("lists are separated by commas or given by repeated flags", () => {
      expect(load({ env: { SERVICE_API_KEYS: "one, two,," } }).config.api_keys).toEqual(["one", "two"]);
      const flags = { "http.cors_origins": ["http://a", "http://b,http://c"] };
      expect(load({ flags }).config.http.cors_origins).toEqual(["http://a", "http://b", "http://c"]);
    });

    test.each([
      ["5m", 300_000],
      ["1h30m", 5_400_000],
      ["250ms", 250],
      ["90", 90_000],
      ["-1", Number.POSITIVE_INFINITY],
    ])("a duration of %s is %d ms", (text, millis) => {
      expect(load({ env: { SERVICE_MODELS_KEEP_ALIVE: text } }).config.models.keep_alive).toBe(millis);
    });

    test.each([
      ["true", true],
      ["1", true],
      ["Yes", true],
      ["off", false],
      ["0", false],
    ])("a boolean of %s is %s", (text, value) => {
      expect(load({ env: { SERVICE_MODELS_AUTO_LOAD: text } }).config.models.auto_load).toBe(value);
    });

    test("paths in a file are relative to its folder, those of flags to the working directory", () => {
      const fromFile = load({
        file: file("cache_dir = 'cache'\n[models]\nallowed_dirs = ['a', '~/b', '/c']"),
      });
      expect(fromFile.config.cache_dir).toBe(path.join(folder, "cache"));
      expect(fromFile.config.models.allowed_dirs).toEqual([
        path.join(folder, "a"),
        path.join(os.homedir(), "b"),
        path.resolve(folder, "/c"),
      ]);
      const { dirs } = load({ file: file("[models]\ndirs = ['mine', '~/b']") }).config.models;
      expect(dirs).toEqual([path.join(folder, "mine"), path.join(os.homedir(), "b")]);
      expect(load({ flags: { cache_dir: "cache" } }).config.cache_dir).toBe(path.resolve("cache"));
    });
  });

  describe("errors name the source, the option and the expected value", () => {
    test("a flag out of range", () => {
      expect(failure({ flags: { "http.port": "70000" } })).toBe(
        "--http-port: http.port: must be at most 65535, got 70000.",
      );
    });

    test("a variable with a wrong type", () => {
      expect(failure({ env: { SERVICE_HTTP_PORT: "eighty" } })).toBe(
        'SERVICE_HTTP_PORT: http.port: must be a whole number, got "eighty".',
      );
    });

    test("an invalid duration", () => {
      expect(failure({ env: { SERVICE_MODELS_KEEP_ALIVE: "soon" } })).toMatch(
        /^SERVICE_MODELS_KEEP_ALIVE: models.keep_alive: must be a duration/,
      );
    });

    test("a value in the file", () => {
      const name = file("[log]\nlevel = 'loud'");
      expect(failure({ file: name })).toMatch(`${name}: log.level: must be "fatal", `);
    });

    test("an unknown option in the file", () => {
      const name = file("[http]\nprot = 1");
      expect(failure({ file: name })).toBe(
        `${name}: unknown option http.prot; docs/configuration.md lists them all. Did you mean http.port?`,
      );
    });

    test("a value instead of a table", () => {
      const name = file("http = 5");
      expect(failure({ file: name })).toMatch(`${name}: http: must be an object, got 5`);
    });

    test("a file that is not TOML, with line and column", () => {
      const name = file("ui = true\nport == 5");
      expect(failure({ file: name })).toMatch(`${name}:2:`);
    });

    test("a named file that does not exist", () => {
      const name = path.join(folder, "none.toml");
      expect(failure({ file: name })).toBe(`Cannot read the configuration ${name}: there is no such file.`);
    });

    test("secrets are never shown", () => {
      const message = failure({ file: file("api_keys = 'hush-hush'\nhub_token = 12345") });
      expect(message).toContain("api_keys");
      expect(message).toContain("hub_token");
      expect(message).not.toMatch(/hush|12345/);
    });
  });

  test("a home that is no folder, such as /dev/null, has no configuration file", () => {
    const { file: read } = load({ env: { XDG_CONFIG_HOME: file("") } });
    expect(read).toBeUndefined();
  });

  describe("the default configuration file", () => {
    const account = 4242;

    test("is ignored with a warning if it cannot be read, and the daemon listens on 127.0.0.1 only", () => {
      const name = path.join(folder, "daybreak", "daybreak.toml");
      mkdirSync(name, { recursive: true });
      const { config, file: read, warnings } = load();
      expect(read).toBeUndefined();
      expect(warnings).toEqual([
        expect.stringMatching(
          /^The configuration .*daybreak\.toml cannot be read .* ignored\. .* 127\.0\.0\.1 only .* name it with --config or SERVICE_CONFIG\.$/,
        ),
      ]);
      expect(config.http.addr).toBe("127.0.0.1");
      expect(load({ env: { SERVICE_HTTP_ADDR: "0.0.0.0" } }).config.http.addr).toBe("0.0.0.0");
      expect(failure({ env: { SERVICE_CONFIG: name } })).toMatch(/^Cannot read the configuration /);
    });

    test.skipIf(process.getuid === undefined)("is ignored if it belongs to another user", () => {
      const name = defaultFile("ui = false");
      if (process.getuid?.() === 0) chownSync(name, account + 1, account + 1);
      expect(readDefaultConfig(name, account)).toEqual({
        tree: undefined,
        ignoredReason: expect.stringMatching(/belongs to another user/),
        isIgnored: true,
      });
    });

    test.skipIf(ROOT.isMissing)(`is read if it belongs to root${ROOT.note}`, () => {
      expect(readDefaultConfig(defaultFile("ui = false"), account).tree).toEqual({ ui: false });
    });

    test("is an error if it is not TOML", () => {
      const name = defaultFile("port == 5");
      expect(failure({})).toMatch(`${name}:1:`);
    });
  });

  test("an unknown variable with the prefix SERVICE_ is a warning", () => {
    const { warnings } = load({ env: { SERVICE_HTTP_PROT: "1", SERVICE_URL: "x", SERVICE_UI: "true" } });
    expect(warnings).toEqual([
      "The environment variable SERVICE_HTTP_PROT is not an option of the daemon: correct its name or unset it.",
    ]);
  });
});

test.each([
  ["http.prot", "http.port"],
  ["http.address", undefined],
  ["api_key", "api_keys"],
  ["apikeys", "api_keys"],
  ["models.keepalive", "models.keep_alive"],
  // Without its table.
  ["port", "http.port"],
  ["keep_alive", "models.keep_alive"],
  // Two tables have one.
  ["prefix", "fleet.prefix"],
  ["mode", "gpu.mode"],
  ["x", undefined],
  ["", undefined],
  ["models.something_else", undefined],
])("similarOption(%j) is %j", (name, meant) => {
  expect(similarOption(name)).toBe(meant);
});
