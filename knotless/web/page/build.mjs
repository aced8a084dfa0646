// Builds ../static/app.js and replay.js, the licences of what is in it, and the hash of what it was built from.
// `node build.mjs FOLDER` writes to another folder, to compare.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const page = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(page, "../static");
const ALLOWED = new Set(["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0"]);

process.chdir(page);
mkdirSync(out, { recursive: true });
const built = await build({
  entryPoints: ["src/main.ts"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  metafile: true,
  write: false,
});
writeFileSync(join(out, "app.js"), built.outputFiles[0].contents);
// A script within HTML: no modules, and no libraries.
const replay = await build({
  entryPoints: ["src/replay.ts"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  metafile: true,
  write: false,
});
const foreign = Object.keys(replay.metafile.inputs).filter((path) => path.includes("node_modules"));
if (foreign.length > 0) throw new Error(`src/replay.ts needs ${foreign[0]}`);
writeFileSync(join(out, "replay.js"), replay.outputFiles[0].contents);
writeFileSync(join(out, "licences.txt"), licences(Object.keys(built.metafile.inputs)));
writeFileSync(join(out, "sources.sha256"), `${sourcesHash()}\n`);

/** The licence texts of all packages in the bundle; throws for a licence that is not allowed. */
function licences(inputs) {
  const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\//;
  const packages = new Set(inputs.flatMap((path) => name.exec(path)?.[1] ?? []));
  return [...packages].sort().map((of) => {
    const folder = join("node_modules", of);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    if (!ALLOWED.has(license)) throw new Error(`${of}: licence ${license} is not allowed`);
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined) throw new Error(`${of}: no licence text`);
    const text = readFileSync(join(folder, file), "utf8").replaceAll("\r\n", "\n").trim();
    return `${of} ${version} (${license})\n\n${text}\n`;
  }).join(`\n${"-".repeat(72)}\n\n`);
}

/** The hash of all sources and the lock file; tests/system/test_web_bundle.py computes the same. */
function sourcesHash() {
  const hash = createHash("sha256");
  const sources = readdirSync("src").map((file) => `src/${file}`);
  for (const file of ["build.mjs", "package-lock.json", "package.json", ...sources.sort()]) {
    hash.update(`${file}\0`).update(readFileSync(file));
  }
  return hash.digest("hex");
}
