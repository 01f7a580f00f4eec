export interface ImportRequest {
  /** A program whose folder is known, or the absolute path of a folder. */
  readonly from: string;
  /** Only these, by the names that they have there. */
  readonly names?: readonly string[] | undefined;
  /** Copy files that cannot be had without copying, instead of using them where they are. */
  readonly copy: boolean;
}

export type ImportStep =
  | { readonly status: "reading"; readonly folder: string; readonly models: number }
  | {
      readonly status: "copying";
      readonly name: string;
      readonly copiedBytes: number;
      readonly totalBytes: number;
    }
  /** present: an earlier import has brought it, and nothing has changed since. */
  | {
      readonly status: "imported" | "updated" | "present";
      readonly name: string;
      readonly alias: string;
      readonly placement: Placement;
      readonly sizeBytes: number;
      readonly notes: readonly string[];
    }
  | { readonly status: "skipped"; readonly name: string; readonly reason: string };

/**
 * How a file of another program is had: as a clone that shares its blocks or as a second name of it (both take no space and
 * outlive its program), as a copy, or where it is.
 */
export type Placement = "cloned" | "linked" | "copied" | "in place";
