// dist/postern.mjs is src/node-version.cjs and then this file. An old Node.js parses all of it before it runs the first line:
// no syntax newer than that of version 12.
// It loads dist/main.cjs, with the code that V8 compiled when the bundle was made (*.cache): the sixth part of a start. Node's
// own cache of compiled code would have to be written by the user that runs the sidecar.
const { hash } = process.getBuiltinModule('node:crypto')
const { existsSync, readFileSync } = process.getBuiltinModule('node:fs')
const { join } = process.getBuiltinModule('node:path')
const { Script, constants } = process.getBuiltinModule('node:vm')

/** The digests of source and code stand before the code (bytes). */
const DIGEST = 32

const digest = (data) => hash('sha256', data, 'buffer')

/** What V8 compiled, if it is whole and of these very bytes. V8 itself checks its version and flags, but not that. */
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

/** At once, where a collector would come by for it some day. What was small is part of a buffer that others share. */
function giveBack({ buffer }, size) {
  if (buffer.byteLength === size) buffer.transfer(0)
}

/** A file of the bundle: the text of a function, as `bundle.ts` wrote it. */
function load(file) {
  const bytes = readFileSync(file)
  const cachedData = compiled(bytes, file)
  // ASCII alone.
  const source = bytes.latin1Slice()
  const script = new Script(source, {
    filename: file,
    ...(cachedData === undefined ? {} : { cachedData }),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  giveBack(bytes, bytes.length)
  if (cachedData !== undefined) giveBack(cachedData, 2 * DIGEST + cachedData.length)
  if (scripts) scripts.set(file, { script, source })
  return script.runInThisContext()
}

/** Loaded when something of them is first asked for, which no start does: 1 to 3 ms and a megabyte each. */
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
