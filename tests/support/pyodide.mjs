// Run sensorsim in Pyodide: node pyodide.mjs PYODIDE_FOLDER SITE_FOLDER WORKING_FOLDER WORDS…
import { pathToFileURL } from "node:url";

const [pyodide, site, work, ...words] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`).href);
const python = await loadPyodide({
  env: { HOME: "/work", COLUMNS: "80", NO_COLOR: "1" },
  stdout: (line) => process.stdout.write(`${line}\n`),
  stderr: (line) => process.stderr.write(`${line}\n`),
});
for (const [place, folder] of [["/site", site], ["/work", work]]) {
  python.FS.mkdirTree(place);
  python.mountNodeFS(place, folder);
}
python.globals.set("words", python.toPy(words));
const code = python.runPython(`
import os, sys, warnings
warnings.simplefilter("error")
os.chdir("/work")
sys.path.insert(0, "/site")
sys.argv = ["sensorsim", *words]
code = 0
try:
    if words[0] == "-c":
        exec(words[1])
    else:
        from sensorsim.__main__ import run
        run()
except SystemExit as stop:
    code = int(stop.code or 0)
sys.stdout.flush()
code
`);
process.exitCode = code;
