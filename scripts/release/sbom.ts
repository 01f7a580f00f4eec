import { z } from "zod";
import { LLAMA_CPP_BUILD } from "../../wasm/llama-cpp-build.ts";
import { type Platform } from "./platform-manifests.ts";
import { BUNDLED, licenseOf, lockedPackage, projectManifest } from "./project.ts";
import { runCommand } from "./run-command.ts";

const sbomSchema = z.looseObject({
  metadata: z.looseObject({ component: z.looseObject({}) }),
  components: z.array(z.looseObject({ name: z.string() })),
});

/**
 * The contents of an unpacked archive as CycloneDX: the packages that npm lists, and what they contain that no
 * package manager knows. The same archive gives the same text.
 */
export async function sbom(folder: string, platform: Platform): Promise<string> {
  const args = ["sbom", "--sbom-format=cyclonedx", "--sbom-type=application", "--omit=dev"];
  const found = sbomSchema.parse(JSON.parse(await runCommand("npm", args, { cwd: folder })));
  const { timestamp: _timestamp, component, ...others } = found.metadata;
  // npm gives it the folder's name.
  const metadata = { ...others, component: { ...component, name: projectManifest().name } };
  const { serialNumber: _serialNumber, ...kept } = found;
  return `${JSON.stringify({ ...kept, metadata, components: [...found.components, ...carried(platform)] }, undefined, 2)}\n`;
}

function carried({ nodeSource }: Platform) {
  const { version } = lockedPackage(nodeSource);
  return [
    {
      "bom-ref": "llama.cpp",
      type: "library",
      name: "llama.cpp",
      version: LLAMA_CPP_BUILD,
      purl: `pkg:github/ggml-org/llama.cpp@${LLAMA_CPP_BUILD}`,
      licenses: [{ license: { id: "MIT" } }],
    },
    ...BUNDLED.map((name) => {
      const bundled = lockedPackage(name);
      return {
        "bom-ref": name,
        type: "library",
        name,
        version: bundled.version,
        purl: `pkg:npm/${name.replace("@", "%40")}@${bundled.version}`,
        licenses: [{ license: { id: licenseOf(name) } }],
      };
    }),
    {
      "bom-ref": "node",
      type: "application",
      name: "node",
      version,
      purl: `pkg:github/nodejs/node@v${version}`,
      licenses: [{ license: { id: "MIT" } }],
    },
  ];
}
