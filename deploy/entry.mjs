// dist/postern.mjs is src/node-version.cjs followed by this file. An old Node.js parses all of it before it runs the first line,
// so it uses no syntax newer than that of Node 12.
// It loads dist/main.cjs with the code that V8 compiled when the bundle was made (*.cache), which saves a sixth of the start.
// Node's own compile cache is no substitute: the user that runs the sidecar would need permission to write it.
const { hash } = process.getBuiltinModule('node:crypto')
const { existsSync, readFileSync } = process.getBuiltinModule('node:fs')
const { join } = process.getBuiltinModule('node:path')
const { Script, constants } = process.getBuiltinModule('node:vm')

/** The size (bytes) of a digest. A cache file is the digest of the source, the digest of the code, and the code. */
const DIGEST = 32

const digest = (data) => hash('sha256', data, 'buffer')

/** The cached code, if it is undamaged and belongs to this source. V8 checks only its own version and flags. */
function compiled(source, file) {
  if (!existsSync(`${file}.cache`)) return undefined
  const whole = readFileSync(`${file}.cache`)
  const [ofSource, ofCode, code] = [
    whole.subarray(0, DIGEST),
    whole.subarray(DIGEST, 2 * DIGEST),
    whole.subarray(2 * DIGEST),
  ]
  return digest(source).equals(ofSource) && digest(code).equals(ofCode) ? code : undefined
}

/** Only while the bundle is made: `bundle.ts` reads the compiled code from these scripts. */
const scripts = globalThis[Symbol.for('postern.scripts')]

const FOLDER = import.meta.dirname
const modules = new Map()

/** Frees the memory of a file now instead of at a later garbage collection. A small file shares its buffer with others. */
function free({ buffer }, size) {
  if (buffer.byteLength === size) buffer.transfer(0)
}

/** Loads a file of the bundle. It is the text of a function: see `wrapped` in `bundle.ts`. */
function load(file) {
  const bytes = readFileSync(file)
  const cachedData = compiled(bytes, file)
  // The file is ASCII.
  const source = bytes.latin1Slice()
  const script = new Script(source, {
    filename: file,
    ...(cachedData === undefined ? {} : { cachedData }),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  free(bytes, bytes.length)
  if (cachedData !== undefined) free(cachedData, 2 * DIGEST + cachedData.length)
  if (scripts) scripts.set(file, { script, source })
  return script.runInThisContext()
}

/** Modules that are loaded at their first use. No start uses them, and each takes 1 to 3 ms and a megabyte. */
const LATE = new Set(['node:http2', 'node:worker_threads'])

const late = (name) => new Proxy({}, { get: (_, key) => process.getBuiltinModule(name)[key] })

function require(name) {
  if (LATE.has(name)) return late(name)
  if (!name.startsWith('./')) return process.getBuiltinModule(name)
  const known = modules.get(name)
  if (known !== undefined) return known.exports
  const file = join(FOLDER, name)
  const module = { exports: {} }
  modules.set(name, module)
  load(file).call(module.exports, module.exports, require, module, file, FOLDER)
  return module.exports
}

require('./main.cjs')
