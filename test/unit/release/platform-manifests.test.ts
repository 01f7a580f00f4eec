import { describe, expect, it } from "vitest";
import {
  dawnManifest,
  nodeManifest,
  platformOf,
  releasedManifest,
} from "../../../scripts/release/platform-manifests.ts";
import { projectManifest } from "../../../scripts/release/project.ts";
import { PLATFORMS } from "../../../src/launch/platform-packages.mjs";

const project = projectManifest();

describe.each(PLATFORMS)("the packages for %s", (name) => {
  const platform = platformOf(name);
  const manifests = [nodeManifest(project, platform), dawnManifest(project, platform)];

  it("have their platform in lists, which every installer reads", () => {
    for (const manifest of manifests) {
      expect(manifest).toMatchObject({ os: [platform.platform], cpu: [platform.arch] });
    }
  });

  it("have no install scripts and no commands", () => {
    for (const manifest of manifests) {
      expect(Object.keys(manifest)).not.toContain("scripts");
      expect(Object.keys(manifest)).not.toContain("bin");
    }
  });
});

it("the manifests name a C library for Linux only", () => {
  expect(nodeManifest(project, platformOf("linux-arm64"))).toMatchObject({ libc: ["glibc"] });
  expect(nodeManifest(project, platformOf("darwin-arm64"))).not.toHaveProperty("libc");
});

describe("the published package", () => {
  const released = releasedManifest(project, PLATFORMS.map(platformOf));

  it("depends only on our own platform packages, in the packed versions", () => {
    const expected = PLATFORMS.map(platformOf).flatMap((platform) =>
      [nodeManifest(project, platform), dawnManifest(project, platform)].map((each) => [
        each.name,
        each.version,
      ]),
    );
    expect(released.optionalDependencies).toEqual(Object.fromEntries(expected));
  });

  it("can be published, and the repository itself cannot", () => {
    expect(project).toHaveProperty("private", true);
    expect(released).not.toHaveProperty("private");
    expect(released).not.toHaveProperty("scripts");
    expect(released).toMatchObject({
      name: "daybreak",
      publishConfig: { access: "public", provenance: true },
    });
  });
});

it("there are no packages for unsupported platforms", () => {
  expect(() => platformOf("sunos-sparc")).toThrow("Nothing is released for sunos-sparc.");
});
