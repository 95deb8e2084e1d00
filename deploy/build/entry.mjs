// postern.mjs is src/node-version.cjs followed by this file. An old Node.js parses all of it before it runs the first line,
// so it uses no syntax newer than that of Node 12.
// It loads main.cjs with the code that V8 compiled when the bundle was made (*.cache), which saves a quarter of the start.
// Node's own caches are no substitute: docs/releasing.md has the figures.
const { hash } = process.getBuiltinModule('node:crypto')
const { closeSync, existsSync, fstatSync, openSync, readSync } = process.getBuiltinModule('node:fs')
const { join } = process.getBuiltinModule('node:path')
const { Script, constants } = process.getBuiltinModule('node:vm')
const { isSea, getAssetKeys, getRawAsset } = process.getBuiltinModule('node:sea')

/** The size (bytes) of a digest. A cache file is the digest of the source, the digest of the code, and the code. */
const DIGEST = 32

const digest = (data) => hash('sha256', data, 'buffer')

/**
 * Reads a file into memory of its own, which `free` returns to the system. Memory from malloc would not go back: after the first large
 * block that is freed, glibc keeps twice as much for later.
 */
function read(name) {
  const file = openSync(join(import.meta.dirname, name))
  const { size } = fstatSync(file)
  const bytes = Buffer.from(new ArrayBuffer(size, { maxByteLength: size }))
  readSync(file, bytes)
  closeSync(file)
  return bytes
}

/** Frees the memory of a file now instead of at a later garbage collection. */
const free = ({ buffer }) => buffer.resize(0)

/** The bundle as files beside this one. */
const files = {
  source: read,
  /** The cached code, if it is undamaged and belongs to this source. V8 checks only its own version and flags. */
  code(name, source) {
    if (!existsSync(join(import.meta.dirname, `${name}.cache`))) return undefined
    const whole = read(`${name}.cache`)
    const [ofSource, ofCode, code] = [
      whole.subarray(0, DIGEST),
      whole.subarray(DIGEST, 2 * DIGEST),
      whole.subarray(2 * DIGEST),
    ]
    return digest(source).equals(ofSource) && digest(code).equals(ofCode) ? code : undefined
  },
  done(source, code) {
    free(source)
    if (code !== undefined) free(code)
  },
}

/** The bundle within the executable, where no file can be damaged or replaced alone. */
const assets = {
  source: (name) => Buffer.from(getRawAsset(name)),
  code: (name) =>
    getAssetKeys().includes(`${name}.cache`)
      ? Buffer.from(getRawAsset(`${name}.cache`)).subarray(2 * DIGEST)
      : undefined,
  done() {},
}

const { source, code, done } = isSea() ? assets : files

/** Only while the bundle is made: `compiled-code.ts` reads the compiled code from these scripts. */
const scripts = globalThis[Symbol.for('postern.scripts')]

/** Loads a file of the bundle. It is the text of a function: see `wrapped` in `bundle.ts`. */
function load(name) {
  const bytes = source(name)
  const cachedData = code(name, bytes)
  // The file is ASCII.
  const text = bytes.latin1Slice()
  const script = new Script(text, {
    filename: name,
    ...(cachedData === undefined ? {} : { cachedData }),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  done(bytes, cachedData)
  if (scripts) scripts.set(name, { script, text })
  return script.runInThisContext()
}

/** Modules that are loaded at their first use. No start without stored tokens uses them, and each takes 0.5 to 3 ms and some memory. */
const LATE = new Set(['assert', 'node:dns/promises', 'node:http2', 'node:worker_threads', 'node:zlib'])

const late = (name) =>
  new Proxy(() => {}, {
    get: (_, key) => process.getBuiltinModule(name)[key],
    apply: (_, _self, given) => process.getBuiltinModule(name)(...given),
  })

const modules = new Map()

function require(name) {
  if (LATE.has(name)) return late(name)
  if (!name.startsWith('./')) return process.getBuiltinModule(name)
  const known = modules.get(name)
  if (known !== undefined) return known.exports
  const module = { exports: {} }
  modules.set(name, module)
  load(name.slice('./'.length)).call(module.exports, module.exports, require, module, name)
  return module.exports
}

require('./main.cjs')
