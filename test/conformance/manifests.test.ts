import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { findProgram } from "../support/find-program.ts";
import { need } from "../support/need.ts";

const CONFIGS = path.join(import.meta.dirname, "../../configs");
const PROBLEMS = path.join(import.meta.dirname, "../support/kubernetes-problems.py");
/** Debian's own, which has Debian's modules. */
const PYTHON = "/usr/bin/python3";
const HAS_KUBERNETES =
  existsSync(PYTHON) && spawnSync(PYTHON, ["-c", "import kubernetes, yaml"]).status === 0;
const KUBERNETES = need("python3-kubernetes", HAS_KUBERNETES);
const KUBECTL = findProgram("kubectl");
const HAS_KUBECTL = need("kubectl", KUBECTL !== null);
const COMPOSE = findProgram("docker-compose");
const HAS_COMPOSE = need("docker-compose", COMPOSE !== null);
const VARIABLES = {
  DAYBREAK_MACHINE_PASSWORD: "m",
  DAYBREAK_OBSERVER_PASSWORD: "o",
  NATS_ADMIN_PASSWORD: "a",
  DAYBREAK_NATS: "nats.example:4222",
  DAYBREAK_NAME: "desk",
};

function read(file: string): string {
  return readFileSync(path.join(CONFIGS, file), "utf8");
}

/** Errors that Kubernetes' types find in manifests. */
function problemsOf(manifests: string): string[] {
  const found = execFileSync(PYTHON, [PROBLEMS], { input: manifests, encoding: "utf8" });
  return found.split("\n").filter((line) => line !== "");
}

/** Checks compose files together with docker-compose. */
function check(files: readonly string[], env: Record<string, string> = VARIABLES) {
  const args = files.flatMap((file) => ["-f", path.join(CONFIGS, file)]);
  const { status, stderr } = spawnSync(COMPOSE ?? "", [...args, "config", "--quiet"], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"], ...env },
  });
  return { status, stderr };
}

describe.skipIf(KUBERNETES.isMissing)(`Kubernetes' types${KUBERNETES.note}`, () => {
  test.each(["fleet/kubernetes.yaml", "container/kubernetes.yaml"])("know all of configs/%s", (file) => {
    expect(problemsOf(read(file))).toEqual([]);
  });

  test.skipIf(HAS_KUBECTL.isMissing)(
    `know all that kubectl makes of configs/fleet/kustomization.yaml${HAS_KUBECTL.note}`,
    () => {
      const made = execFileSync(KUBECTL ?? "", ["kustomize", path.join(CONFIGS, "fleet")], {
        encoding: "utf8",
      });
      expect(made).toContain("kind: ConfigMap");
      expect(made).toContain("cluster {");
      expect(problemsOf(made)).toEqual([]);
    },
  );

  test.each([
    [
      "a field that there is not",
      "replicas: 2",
      "replicaz: 2",
      /StatefulSet daybreak\.spec\.replicaz: is unknown/,
    ],
    ["a field that is missing", "serviceName: daybreak-machines", "", /StatefulSet daybreak: .*service_name/],
    ["a value of another type", "replicas: 2", "replicas: two", /StatefulSet daybreak: .*two/],
    [
      "a kind of another version",
      "apiVersion: policy/v1",
      "apiVersion: policy/v7",
      /policy\/v7 has no such kind/,
    ],
  ])("find %s", (_what, given, wrong, problem) => {
    const broken = read("fleet/kubernetes.yaml").replaceAll(given, wrong);
    expect(problemsOf(broken).join("\n")).toMatch(problem);
  });
});

describe.skipIf(HAS_COMPOSE.isMissing)(`docker-compose takes${HAS_COMPOSE.note}`, () => {
  test.each([
    [["container/compose.yaml"]],
    [["container/compose.yaml", "fleet/compose.yaml"]],
    [["fleet/compose-nats.yaml"]],
  ])("%j", (files) => {
    expect(check(files)).toEqual({ status: 0, stderr: "" });
  });

  test("nothing without the passwords", () => {
    const { status, stderr } = check(["fleet/compose-nats.yaml"], {});
    expect(status).not.toBe(0);
    expect(stderr).toContain("DAYBREAK_MACHINE_PASSWORD");
  });
});
