// Becomes dist/postern.mjs. Loads dist/main.cjs, with the code that V8 compiled when the bundle was made (*.cache): the
// sixth part of a start. Node's own cache of compiled code would have to be written by the user that runs the sidecar.
// What the sidecar loads as well; `node:zlib` would take 2 ms more.
const { hash } = process.getBuiltinModule('node:crypto')
const { existsSync, readFileSync } = process.getBuiltinModule('node:fs')
const { join } = process.getBuiltinModule('node:path')
const { Script, constants } = process.getBuiltinModule('node:vm')

/** The digests of source and code stand before the code (bytes). */
const DIGEST = 32

const digest = (data) => hash('sha256', data, 'buffer')

/** What V8 compiled, if it is whole and of this very source. V8 itself checks its version and flags, but not that. */
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

/** Filled while the bundle is made, for `bundle.ts` to ask what was compiled. */
const scripts = globalThis[Symbol.for('postern.scripts')]

const FOLDER = import.meta.dirname
const modules = new Map()

/** A file of the bundle: the text of a function, as `bundle.ts` wrote it. */
function load(file) {
  // ASCII alone.
  const source = readFileSync(file, 'latin1')
  const cachedData = compiled(source, file)
  const script = new Script(source, {
    filename: file,
    ...(cachedData === undefined ? {} : { cachedData }),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  // Given back at once, where a collector would come by for it some day; a small one is part of a buffer that others share.
  if (cachedData?.buffer.byteLength === cachedData?.length + 2 * DIGEST) cachedData.buffer.transfer(0)
  scripts?.set(file, { script, source })
  return script.runInThisContext()
}

/** Loaded when something of them is first asked for, which no start does: 1 to 3 ms and a megabyte each. */
const LATE = new Set(['node:http2', 'node:worker_threads', 'v8'])

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
