import type { HubSpec } from "./hub-spec.ts";

/** What a name means by its form and by the alias table; nothing has been looked up on disk or on the hub. */
export type ResolvedName =
  /** An alias of configs/models.toml or of the user's file. */
  | {
      readonly kind: "alias";
      readonly alias: string;
      readonly spec: HubSpec;
      /** Projector file in the same repository; "auto" when the alias says vision and names no file. */
      readonly projector: string | undefined;
    }
  | { readonly kind: "spec"; readonly spec: HubSpec }
  /** A file path, with a leading `~` expanded; relative ones count from the daemon's working directory. */
  | { readonly kind: "path"; readonly path: string }
  /** A well-formed name that no alias table knows: a shipped, user's or Modelfile-made model, or nothing. */
  | { readonly kind: "name"; readonly name: string };

/** Tells what names mean; built once from the alias files. */
export interface NameResolver {
  /** Throws invalid_model_name. `name` and `name:latest` give the same answer. */
  resolve(name: string): ResolvedName;
  /** The first alias that means exactly this file of this repository at its main revision. */
  aliasOf(repo: string, file: string): string | undefined;
}
